"""`postroad group`: what a group has read, how far it is behind, and moving it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from postroad.testing import Node

from .conftest import PATIENCE_S, Command, read_json


@pytest.fixture
def topic(run: Command, name: str) -> str:
    """Five messages, of which a group of the same name has read two."""
    run("publish", name, *"01234")
    run("consume", name, "-g", name, "-n", "2")
    return name


def test_group_is_listed_and_described_with_its_lag(run: Command, topic: str) -> None:
    assert {"group": topic, "state": "Empty", "type": "classic"} in read_json(
        run("group", "list", "--json").stdout
    )
    described = read_json(run("group", "describe", topic, "--json").stdout)
    (partition,) = described["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (2, 5, 3)
    assert 0 <= partition["lag_seconds"] < 60
    shown = run("group", "describe", topic).stdout
    assert f"{topic}  Empty, classic, 0 members" in shown
    assert "LAG SECONDS" in shown


def test_lag_in_seconds_is_the_age_of_the_oldest_unread_message(run: Command, name: str) -> None:
    minute_ago = int((time.time() - 60) * 1000)
    run("publish", name, "--json", f'{{"value": "old", "timestamp": {minute_ago}}}', '{"value": "new"}')
    run("group", "reset", name, "-t", name, "--to", "beginning")
    (partition,) = read_json(run("group", "describe", name, "--json").stdout)["partitions"]
    assert 60 <= partition["lag_seconds"] < 120


def test_group_that_read_all_has_no_lag(run: Command, topic: str) -> None:
    run("consume", topic, "-g", topic)
    (partition,) = read_json(run("group", "describe", topic, "--json").stdout)["partitions"]
    assert (partition["lag"], partition["lag_seconds"]) == (0, None)


def test_group_is_moved_and_reads_from_there(run: Command, topic: str) -> None:
    tried = run("group", "reset", topic, "--to", "end", "--dry-run", "--json")
    assert read_json(tried.stdout) == [{"topic": topic, "partition": 0, "before": 2, "after": 5}]
    run("group", "reset", topic, "--to", "1")
    assert run("consume", topic, "-g", topic).stdout == "1\n2\n3\n4\n"
    run("group", "reset", topic, "--to", "-1")
    assert run("consume", topic, "-g", topic).stdout == "4\n"


def test_group_that_committed_nothing_needs_a_topic(run: Command, name: str) -> None:
    assert "--topic" in run("group", "reset", name, "--to", "end", code=1).stderr


def test_deleted_group_is_gone(run: Command, topic: str) -> None:
    run("group", "delete", "--yes", topic)
    for command in (["describe"], ["delete", "--yes"]):
        assert run("group", *command, topic, code=1).stderr == f"postroad: there is no group {topic}\n"


def test_group_with_members_shows_them_and_can_not_be_moved(
    run: Command, topic: str, postroad_session: Node
) -> None:
    command = [sys.executable, "-m", "postroad", "consume", topic, "-g", topic, "--follow"]
    member = subprocess.Popen([*command, "-b", postroad_session.bootstrap], stdout=subprocess.PIPE)
    try:
        assert member.stdout is not None
        assert member.stdout.readline() == b"2\n"
        described = read_json(run("group", "describe", topic, "--json").stdout)
        assert described["state"] == "Stable"
        assert described["members"][0]["partitions"] == [[topic, 0]]
        assert described["partitions"][0]["member"] == described["members"][0]["id"]
        refused = f"postroad: group {topic} has members: stop them first\n"
        assert run("group", "reset", topic, "--to", "end", code=1).stderr == refused
        assert run("group", "delete", "--yes", topic, code=1).stderr == refused
    finally:
        member.terminate()
        member.wait(PATIENCE_S)
        member.communicate()


def test_reset_beyond_the_end_says_where_it_went(run: Command, topic: str) -> None:
    moved = run("group", "reset", topic, "--to", "1200", "--dry-run", "--json")
    end = read_json(moved.stdout)[0]["after"]
    assert f"{topic}/0 ends at {end}, before 1200: using the end instead\n" in moved.stderr
