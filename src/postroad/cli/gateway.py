"""`postroad gateway`: an HTTP gateway alone, in front of nodes that run elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from postroad.cli.command import Command
from postroad.cli.session import address_to_hand_on, bootstrap_option
from postroad.cli.settings import gateway_flags, gateway_options, load_settings, ready_file_option


@click.command(cls=Command)
@bootstrap_option
@gateway_options
@ready_file_option
@click.option("--inherit", type=click.IntRange(min=0), hidden=True)  # how `postroad serve` starts its own
def gateway(
    bootstrap: str,
    http: str | None,
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    ready_file: str | None,
    inherit: int | None,
) -> None:
    """Run an HTTP gateway until SIGTERM or Ctrl-C. `postroad serve` starts one by itself.
    Any number of gateways can serve the same nodes.
    """
    loaded = load_settings(file, overrides, insecure, {"http.enabled": "true", **gateway_flags(http)})
    address = address_to_hand_on(bootstrap) if inherit is None else bootstrap
    from postroad.gateway.serve import run

    sys.exit(run(loaded.settings, address, ready_file, inherit))
