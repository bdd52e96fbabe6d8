"""The command in this process (quick), or as a program of its own (where pipes and signals matter)."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.testing import Node

Command = Callable[..., Result]
Program = Callable[..., "subprocess.CompletedProcess[str]"]
PATIENCE_S = 60


@pytest.fixture
def name() -> str:
    """For a topic or a group that nothing else uses."""
    return f"n-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def run(postroad_session: Node) -> Command:
    """`run("topic", "list")`: the result, which must be a success unless `code` says otherwise."""

    def call(*arguments: str, code: int = 0) -> Result:
        environment = {"POSTROAD_BOOTSTRAP": postroad_session.bootstrap}
        result = CliRunner().invoke(main, list(arguments), env=environment)
        assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
        return result

    return call


@pytest.fixture
def program(postroad_session: Node) -> Program:
    """The same as a process, with `stdin` as its standard input."""

    def call(*arguments: str, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "postroad", *arguments, "--bootstrap", postroad_session.bootstrap]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == code, done.stderr
        return done

    return call


def consumed(run: Command, subscription: str, count: int, *options: str) -> str:
    """The next `count` messages, however long they take, and none beyond them."""
    wait = f"{PATIENCE_S}s"
    return run("subscription", "consume", subscription, "--max", str(count), "--wait", wait, *options).stdout


def read_json(text: str) -> Any:
    return msgspec.json.decode(text)


def read_lines(text: str) -> list[Any]:
    return [msgspec.json.decode(line) for line in text.splitlines()]
