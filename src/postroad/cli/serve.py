"""`postroad serve`: a node in this process, and a gateway beside it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from postroad.cli.command import Command
from postroad.cli.settings import load_settings, node_flags, node_options, ready_file_option


@click.command(cls=Command)
@node_options
@ready_file_option
def serve(
    data: Path | None,
    kafka: str | None,
    http: str | None,
    no_http: bool,
    store: str | None,
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    ready_file: str | None,
) -> None:
    """Run a node and its HTTP gateway until SIGTERM or Ctrl-C. By default both listen on this machine only.

    Settings come from a file, the environment (POSTROAD_SECTION_NAME) and these options. Options win over
    the environment, and the environment wins over the file.
    """
    loaded = load_settings(file, overrides, insecure, node_flags(data, kafka, http, no_http, store))
    from postroad.broker.serve import run

    sys.exit(run(loaded, ready_file))
