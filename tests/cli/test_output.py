"""Tables on a terminal, and where to start reading."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from postroad.cli.start import BEGINNING, END, Start, parse
from postroad.testing import Node

from .conftest import PATIENCE_S, Command

NOW_MS = 1_700_000_000_000


def test_terminal_gets_a_drawn_table(run: Command, name: str, postroad_session: Node) -> None:
    run("topic", "create", name, "-p", "3")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "postroad", "topic", "list", "-b", postroad_session.bootstrap]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    listing = subprocess.Popen(command, stdout=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    try:
        drawn = read_to_the_end(ours)
        assert listing.wait(PATIENCE_S) == 0
    finally:
        listing.kill()
        listing.wait()
        os.close(ours)
    assert "─" in drawn
    assert "partitions" in drawn
    assert name in drawn


def read_to_the_end(terminal: int) -> str:
    """It takes a few kilobytes at a time, and there may be many topics. The other side's end is an error."""
    drawn = b""
    with suppress(OSError):
        while more := os.read(terminal, 65536):
            drawn += more
    return drawn.decode()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("beginning", BEGINNING),
        ("earliest", BEGINNING),
        ("end", END),
        ("latest", END),
        ("0", Start("offset", 0)),
        ("1200", Start("offset", 1200)),
        ("-10", Start("last", 10)),
        ("30s", Start("time", NOW_MS - 30_000)),
        ("2h", Start("time", NOW_MS - 7_200_000)),
        ("7d", Start("time", NOW_MS - 604_800_000)),
        ("2023-11-14T22:13:20+00:00", Start("time", NOW_MS)),
        ("2023-11-14T23:13:20+01:00", Start("time", NOW_MS)),
        ("soon", None),
        ("--1", None),
        ("5x", None),
        ("", None),
    ],
)
def test_start_is_a_place_an_offset_or_a_time(text: str, start: Start | None) -> None:
    assert parse(text, NOW_MS) == start
