"""`postroad serve`: a node in this process, or several below it, and a gateway beside them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from postroad.cli.command import Command
from postroad.cli.numbers import NODES, REPLICAS
from postroad.cli.session import Failed
from postroad.cli.settings import load_settings, node_flags, node_options, ready_file_option

if TYPE_CHECKING:
    from postroad.config import Loaded

PROFILE: Final = "admin.profile"  # as `broker/secure_start.py` has it, which most starts do without


@click.command(cls=Command)
@node_options
@click.option(
    "--nodes",
    type=NODES,
    help="Run this many nodes on this machine, each in a process of its own. Their ports follow "
    "the one of --kafka.",
)
@click.option(
    "--replicas",
    type=REPLICAS,
    help="Replicas of a topic whose creator does not say how many. [default: 1]",
)
@click.option(
    "--secure",
    is_flag=True,
    help="TLS and logins on both ports. The first start makes certificates and the user admin, prints the "
    "password once, and writes DATA/admin.profile for --profile.",
)
@ready_file_option
@click.option("--child", "is_child", is_flag=True, hidden=True)  # how `--nodes` starts its nodes
def serve(
    data: Path | None,
    kafka: str | None,
    http: str | None,
    no_http: bool,
    store: str | None,
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    nodes: int | None,
    replicas: int | None,
    secure: bool,
    ready_file: str | None,
    is_child: bool,
) -> None:
    """Run a node and its HTTP gateway until SIGTERM or Ctrl-C. By default both listen on this machine only.

    Settings come from a file, the environment (POSTROAD_SECTION_NAME) and these options. Options win over
    the environment, and the environment wins over the file.
    """
    flags = node_flags(data, kafka, http, no_http, store)
    if replicas is not None:
        flags["topics.replicas"] = str(replicas)
    secured = None
    if secure:
        from postroad.cli.secure import load

        loaded, secured = load(file, overrides, insecure, flags)
    else:
        loaded = load_settings(file, overrides, insecure, flags)
        _refuse_secured(loaded, insecure)
    if nodes is not None:
        from postroad.broker import several_nodes

        sys.exit(several_nodes.run(loaded, nodes, ready_file, secured))
    gc.disable()  # all that is imported stays: to look for garbage in it takes a tenth of the start
    from postroad.broker.serve import run

    gc.freeze()
    gc.enable()
    sys.exit(run(loaded, ready_file, is_child, secured))


def _refuse_secured(loaded: Loaded, insecure: bool) -> None:
    """Users and rules of a data directory hold until somebody says that they don't."""
    settings = loaded.settings
    if not settings.security.enabled and not insecure and (settings.data.dir / PROFILE).exists():
        raise Failed(
            f"{settings.data.dir} was started with --secure: say so again. (With --insecure instead, "
            "its users and rules hold no more.)"
        )
