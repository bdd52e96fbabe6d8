"""The command as a process: its lines, its result, its failure, its end."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from postroad.schedulers.access import Access
from postroad.schedulers.command import Command, CommandFailed
from postroad.testing import Node

NOWHERE = Access("127.0.0.1:1")


def test_lines_are_told_and_the_last_one_of_json_is_the_result(postroad_session: Node) -> None:
    told: list[str] = []
    Command(["topic", "create", "told"], Access(postroad_session.bootstrap)).run(told.append)
    assert told == ["created told"]
    access = Access(postroad_session.bootstrap)
    Command(["publish", "told", "hello"], access).run(told.append)
    found = Command(["consume", "told", "--json", "--count", "1", "--from-beginning"], access).run(
        told.append
    )
    assert (found["topic"], found["value"]) == ("told", "hello")


def test_failure_says_what_the_command_said() -> None:
    with pytest.raises(CommandFailed, match=r"postroad: nothing listens on 127\.0\.0\.1:1"):
        Command(["topic", "list", "--timeout", "1"], NOWHERE).run(lambda line: None)
    with pytest.raises(CommandFailed, match="can't be run: No such file"):
        Command([], NOWHERE, "/nowhere/postroad").run(lambda line: None)


def test_command_that_is_stopped_has_ended() -> None:
    waits = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    command = Command([], NOWHERE, [sys.executable, "-c", waits])
    begun = threading.Event()
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        begun.set()

    def stop() -> None:
        begun.wait()
        command.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(CommandFailed, match="stopped"):
        command.run(tell)
    stopper.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(told[0]), 0)


SHOWS = """
import os, sys
print(sys.argv, dict(os.environ))
print(open(os.environ["POSTROAD_PROFILE"]).read())
"""


def test_password_is_on_no_command_line_and_in_no_variable() -> None:
    told: list[str] = []
    access = Access("kafka:9092", "ann", "correct horse")
    Command(["pipeline"], access, [sys.executable, "-c", SHOWS]).run(told.append)
    public, *profile = told
    assert "kafka:9092" in public
    assert "correct horse" not in public
    assert 'password = "correct horse"' in profile
