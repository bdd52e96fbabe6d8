"""Pipelines as commands, killed with no warning at any moment and run again."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from postroad.testing import Node
from postroad.testing import node as start_node
from tests.spark import plain
from tests.spark.plain import Message

KILLS = 5
COUNT = 3_000
PATIENCE_S = 300.0
MESSAGES = [Message(b"v%d" % number, b"k%d" % (number % 50), number % 3) for number in range(COUNT)]

pytestmark = pytest.mark.spark_slow


@pytest.fixture(scope="module")
def other() -> Iterator[Node]:
    with start_node() as running:
        yield running


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "postroad.pipelines", *words, "--json", "--master", "local[2]"]


def run_to_the_end(*words: str) -> dict[str, object]:
    """What the command says last."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_and_kill(chance: random.Random, bootstrap: str, topic: str, *words: str) -> None:
    """SIGKILL some moment after the first new messages are in the topic, or when it has ended."""
    before = len(plain.read_all(bootstrap, topic))
    process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while process.poll() is None and len(plain.read_all(bootstrap, topic)) == before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        time.sleep(chance.uniform(0, 1.5))
    finally:
        process.kill()
        process.wait(30)


def test_a_replay_that_is_killed_again_and_again_puts_each_message_once(node: Node, topic: str) -> None:
    target = f"{topic}-again"
    plain.create(node.bootstrap, topic, 3)
    plain.create(node.bootstrap, target, 3)
    plain.send(node.bootstrap, topic, MESSAGES)
    words = ("replay", "-b", node.bootstrap, "-t", topic, "--to", target)
    chance = random.Random(5)
    for _ in range(KILLS):
        run_and_kill(chance, node.bootstrap, target, *words, "--rate", "200/s")

    assert run_to_the_end(*words)["rows"] == COUNT
    assert run_to_the_end(*words)["was_complete"]
    values = sorted(row.value or b"" for row in plain.read_all(node.bootstrap, target))
    assert values == sorted(each.value or b"" for each in MESSAGES)


def test_a_mirror_that_is_killed_again_and_again_puts_each_message_once(
    node: Node, other: Node, topic: str
) -> None:
    plain.create(node.bootstrap, topic, 3)
    plain.create(other.bootstrap, topic, 3)
    words = ("mirror", "-b", node.bootstrap, "--to", other.bootstrap, "-t", topic, "--once")
    chance = random.Random(6)
    for number in range(KILLS):
        plain.send(node.bootstrap, topic, MESSAGES[number::KILLS])
        run_and_kill(chance, other.bootstrap, topic, *words)

    assert run_to_the_end(*words)["is_complete"]
    rows = [plain.read_all(each.bootstrap, topic) for each in (node, other)]
    assert len(rows[0]) == COUNT
    assert [(row.partition, row.value) for row in rows[0]] == [(row.partition, row.value) for row in rows[1]]
