"""`postroad browse` finds what a filter describes, as people and programs read it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from postroad.testing import Node
from tests.cli.conftest import PATIENCE_S, Command, Program


@pytest.fixture
def orders(postroad_session: Node, run: Command, name: str) -> str:
    """A topic of two partitions with 200 orders, and what is no order."""
    run("topic", "create", name, "--partitions", "2")
    publish(postroad_session, name, [(f"order-{n}", json.dumps({"total": n})) for n in range(200)])
    publish(postroad_session, name, [("odd", "\x1b[31mred \u202e\n<script>"), ("bytes", b"\xff\x00")])
    return name


def publish(node: Node, topic: str, messages: list[tuple[str, str | bytes]]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0})
    for number, (key, value) in enumerate(messages):
        producer.produce(
            topic, value, key, number % 2, headers=[("source", b"shop")], timestamp=1_767_225_600_000
        )
    assert producer.flush(30) == 0


@contextmanager
def browsing(node: Node, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process that somebody has to stop."""
    command = [sys.executable, "-m", "postroad", "browse", *arguments, "--bootstrap", node.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_messages_that_match_are_printed_a_line_each(program: Program, orders: str) -> None:
    done = program("browse", orders, "--where", 'value.total > 197 and header.source = "shop"')
    assert sorted(done.stdout.splitlines()) == [
        '2026-01-01T00:00:00.000Z  0:99  order-198  {"total": 198}',
        '2026-01-01T00:00:00.000Z  1:99  order-199  {"total": 199}',
    ]
    assert done.stderr == "scanned 202, found 2\n"


def test_nothing_in_a_message_steers_the_terminal(run: Command, orders: str) -> None:
    found = run("browse", orders, "--where", 'key in ("odd", "bytes")').stdout.splitlines()
    assert sorted(line.split("  ", 2)[2] for line in found) == [
        "bytes  \\xff\\x00",
        "odd  \\x1b[31mred \\u202e\\n<script>",
    ]


def test_json_has_every_field(run: Command, orders: str) -> None:
    (line,) = run("browse", orders, "--where", "value.total = 7", "--json").stdout.splitlines()
    assert json.loads(line) == {
        "topic": orders, "partition": 1, "offset": 3, "timestamp": 1_767_225_600_000, "key": "order-7",
        "value": '{"total": 7}', "headers": [["source", "shop"]],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--limit", "5"], 5),
        (["--partition", "0"], 101),
        (["--from", "-3"], 6),
        (["--from", "end"], 0),
        (["--from", "0:90,1:95"], 17),
        (["--from", "0:90,1:95", "--where", "value.total >= 0"], 15),
        (["--committed"], 202),
    ],
)
def test_it_begins_and_ends_where_it_is_told(
    run: Command, orders: str, options: list[str], count: int
) -> None:
    assert len(run("browse", orders, *options).stdout.splitlines()) == count


def test_a_filter_that_cant_be_read_is_pointed_at(run: Command, name: str) -> None:
    refused = run("browse", name, "--where", "value.total > ", code=2)
    assert "Column 15: expected a text in quotes, a number" in refused.stderr
    assert "value.total > \n                ^" in refused.stderr


def test_topics_and_partitions_that_are_not_there_are_named(run: Command, name: str) -> None:
    assert name in run("browse", name, code=1).stderr
    run("topic", "create", name)
    assert "there is no 7" in run("browse", name, "--partition", "7", code=1).stderr


def test_it_goes_on_live_until_ctrl_c_and_says_where_to_go_on(
    postroad_session: Node, run: Command, name: str
) -> None:
    run("topic", "create", name, "--partitions", "2")
    publish(postroad_session, name, [("a", "1"), ("b", "2")])
    with browsing(postroad_session, name, "--live", "--where", 'key = "b"') as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("  b  2\n")
        publish(postroad_session, name, [("a", "3"), ("b", "4")])
        assert process.stdout.readline().endswith("  b  4\n")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == -signal.SIGINT
    assert "found 2\n" in told
    again = told.rsplit("go on with --from ", 1)[1].strip()
    assert run("browse", name, "--from", "0:0,1:0").stdout.count("\n") == 4
    publish(postroad_session, name, [("a", "5"), ("b", "6")])
    left = run("browse", name, "--from", again, "--where", 'value in ("5", "6")').stdout
    assert sorted(line[-1] for line in left.splitlines()) == ["5", "6"]
