"""`postroad config`: all settings of a node, their values in effect, and where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.config_client import client
from postroad.cli.session import json_option
from postroad.cli.settings import load_settings, node_flags, node_options


class CommandWithMore(Command, click.Group):
    """Does something of its own where no further command follows."""

    command_class = Command


@click.group(cls=CommandWithMore, invoke_without_command=True)
@node_options
@json_option
@click.pass_context
def config(
    context: click.Context,
    data: Path | None,
    kafka: str | None,
    http: str | None,
    no_http: bool,
    store: str | None,
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    as_json: bool,
) -> None:
    """Print all settings of a node as TOML, with comments, ready to be used as a file. For those of a client
    see `postroad config client`.

    \b
    postroad config > postroad.toml
    postroad serve --config postroad.toml
    """
    if context.invoked_subcommand is not None:
        return
    from postroad.config import to_toml

    loaded = load_settings(file, overrides, insecure, node_flags(data, kafka, http, no_http, store))
    if not as_json:
        click.echo(to_toml(loaded), nl=False)
        return
    output.write_json(
        {
            name: {"value": _plain(loaded.settings.get(name)), "from": origin}
            for name, origin in loaded.origins.items()
        }
    )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


config.add_command(client)
