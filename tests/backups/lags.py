"""How much a subscription has before it, as an operator sees it."""

from __future__ import annotations

import json

from click.testing import CliRunner

from postroad.cli import main
from tests.backups.load import CREW


def call(*arguments: str, bootstrap: str = "", code: int = 0) -> str:
    """What the command prints."""
    environment = {"POSTROAD_BOOTSTRAP": bootstrap} if bootstrap else {}
    done = CliRunner().invoke(main, list(arguments), env=environment)
    assert done.exit_code == code, f"{arguments}: {done.output}\n{done.exception!r}"
    return done.output


def lag_of(bootstrap: str) -> int:
    described = json.loads(call("subscription", "describe", CREW, "--json", bootstrap=bootstrap))
    return sum(int(position["lag"]) for position in described["partitions"])
