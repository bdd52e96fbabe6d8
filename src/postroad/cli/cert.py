"""`postroad cert …`: certificates for nodes and clients, and for how long they are valid."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Command, Group
from postroad.cli.param_type import ParamType
from postroad.cli.session import Failed, json_option
from postroad.errors import ConfigurationError

DAYS: Final = 365
DAYS_TYPE: Final = click.IntRange(1, 3650)
COLUMNS: Final = ("file", "valid until", "days left")

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HOST: Final = re.compile(r"[A-Za-z0-9*][A-Za-z0-9.*-]{0,252}|[0-9A-Fa-f:.]{2,45}")
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
RESERVED: Final = ("ca", "node")  # the names of other files


class NameType(ParamType[str]):
    """A text of a few letters: it becomes a file's name, and a part of a certificate."""

    def __init__(self, name: str, form: re.Pattern[str]) -> None:
        self.name = name
        self._form = form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not self._form.fullmatch(text) or (self.name == "user" and text in RESERVED):
            self.fail(f"{text[:60]!r} can't be the name of a {self.name}", param, ctx)
        return text


@click.group(cls=Group)
def cert() -> None:
    """Make certificates for TLS, or see for how long they are valid."""


@cert.command(cls=Command)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--host",
    "hosts",
    type=NameType("host", _HOST),
    multiple=True,
    help="A name or an address by which clients reach a node. May be repeated.",
)
@click.option(
    "--user",
    "users",
    type=NameType("user", _NAME),
    multiple=True,
    help="A client that is to have a certificate. May be repeated.",
)
@click.option(
    "--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True, help="How long they are valid."
)
def make(directory: Path, hosts: Sequence[str], users: Sequence[str], days: int) -> None:
    """Make a CA in DIRECTORY, unless there is one, and certificates that it signs.

    Without --user: node.pem and node.key, for this machine and each --host. A node reads a new one
    without a restart. With --user: NAME.pem and NAME.key for each.
    """
    from postroad.cli.authority import Authority

    try:
        authority = Authority(directory)
        if authority.ensure():
            click.echo(f"made a CA: {authority.ca}; keep {directory / 'ca.key'} to yourself")
        made = [authority.issue_user(user, days) for user in users]
        if hosts or not users:
            made.append(authority.issue_node(hosts, days))
    except (OSError, ConfigurationError) as error:
        raise Failed(str(error)) from None
    for certificate in made:
        click.echo(f"made {certificate} and {certificate.with_suffix('.key')}, valid for {days} days")


@cert.command(cls=Command)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@json_option
def show(files: Sequence[Path], as_json: bool) -> None:
    """Show for how long certificates are valid."""
    from postroad.system.certificates import DAY_S, date_text, expiry_s

    rows = []
    for file in files:
        try:
            until = expiry_s(file)
        except ConfigurationError as error:
            raise Failed(str(error)) from None
        rows.append((str(file), date_text(until), int((until - time.time()) // DAY_S)))
    output.listing(COLUMNS, rows, as_json, "")
