"""`postroad top`, as a process in a real terminal and without one."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from postroad.cli.top import fitted
from postroad.cli.top_frame import FrameTable, Look, count, frame, printable, rate, size, span
from postroad.client.metadata import Address, Cluster, Topic
from postroad.client.metadata import Partition as PartitionState
from postroad.gateway.history.reading import Reading
from postroad.testing import Node
from tests.cli.conftest import PATIENCE_S, Command, Program

ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"


class Terminal:
    """A command whose terminal somebody looks at."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, slave: int) -> None:
        self.process = process
        self.seen = b""
        self._master = master
        self.slave = slave

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            self._read()

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait(self) -> int:
        code = self.process.wait(PATIENCE_S)
        while self._read():
            pass
        return code

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.2)[0]:
            return False
        with contextlib.suppress(OSError):
            self.seen += os.read(self._master, 65536)
        return True


@contextmanager
def terminal(node: Node, *options: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "postroad", "top", "--bootstrap", node.bootstrap, *options]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "50"}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    try:
        yield Terminal(process, master, slave)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        os.close(master)
        os.close(slave)


@pytest.fixture
def topic(run: Command, name: str) -> str:
    run("topic", "create", name)
    run("publish", name, "hello")
    return name


@pytest.mark.parametrize("ending", ["q", "interrupt", "terminate"])
def test_it_quits_cleanly_and_leaves_the_terminal_as_it_was(postroad_session: Node, ending: str) -> None:
    with terminal(postroad_session, "--interval", "300ms") as seen:
        before = termios.tcgetattr(seen.slave)
        seen.wait_for(b"address")  # of the nodes: of many topics some are on the screen
        assert ENTER_SCREEN in seen.seen
        assert termios.tcgetattr(seen.slave) != before, "keys come one by one"
        if ending == "q":
            seen.type(b"q")
        else:
            seen.process.send_signal(signal.SIGINT if ending == "interrupt" else signal.SIGTERM)
        code = seen.wait()
        assert code == (-signal.SIGINT if ending == "interrupt" else 0)
        assert seen.seen.rindex(LEAVE_SCREEN) > seen.seen.rindex(ENTER_SCREEN)
        assert SHOW_CURSOR in seen.seen[seen.seen.rindex(ENTER_SCREEN) :]
        assert b"Traceback" not in seen.seen
        assert termios.tcgetattr(seen.slave) == before


def test_without_a_terminal_frames_are_plain_text(program: Program, topic: str) -> None:
    done = program("top", "--once")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("cluster ")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(topic)]
    assert line.split()[1:3] == ["1", "1"]
    done = program("top", "--frames", "2", "--interval", "200ms")
    assert done.stdout.count("NODE ") == 2


def test_no_node_is_told_as_by_every_command(run: Command) -> None:
    refused = run("top", "--once", "--bootstrap", "127.0.0.1:1", "--timeout", "1", code=1)
    assert "nothing listens" in refused.stderr


def looks(*messages: float) -> list[Look]:
    """One look a second at a topic that has so many messages, a subscription and a group that are behind."""
    part = PartitionState(0, 1, 0, (1, 2), (1,))
    topics = {"orders": Topic("orders", b"", False, (part,)), "__own": Topic("__own", b"", True, (part,))}
    cluster = Cluster("c", 1, {1: Address("a", 1), 2: Address("b", 2)}, topics, {})
    return [
        Look(
            float(second),
            cluster,
            Reading(
                {
                    "orders": {"end_offset": end, "start_offset": 5, "partitions": 1, "size_bytes": 2048},
                    "__own": {},
                },
                {"w\x1b[2J": {"lag": 7, "delivered": end, "accepted": end / 2, "oldest_seconds": 130}},
                {"readers": {"lag": 3, "lag_seconds": 5}},
                {"1": {"cpu_seconds_total": end / 100, "disk_bytes": 100, "disk_free_bytes": 40}},
                {},
            ),
            frozenset({1}),
        )
        for second, end in enumerate(messages)
    ]


def test_a_frame_has_rates_between_two_looks() -> None:
    before, now = looks(100, 150)
    found = frame(before, now)
    assert found.headline.startswith(
        "cluster c  2 nodes (1 silent), 2 topics, 2 partitions: 2 under-replicated"
    )
    nodes, topics, subscriptions, groups = found.tables
    assert nodes.rows == [
        ("1*", "a:1", "50%", "-", "40%", "-", "2", "2"),
        ("2", "b:2", "-", "-", "-", "-", "0", "2"),
    ]
    assert topics.rows == [("orders", "1", "145", "2.0 KiB", "50")]
    assert subscriptions.rows == [("w\\x1b[2J", "7", "-", "-", "-", "2m", "50", "25", "-")]
    assert groups.rows == [("readers", "3", "5s")]


def test_counters_that_begin_anew_are_no_negative_rates() -> None:
    before, now = looks(100, 10)
    assert frame(before, now).tables[1].rows[0][-1] == "0"


def test_tables_fit_the_screen() -> None:
    tables = [FrameTable(("a",), [("x",)] * rows) for rows in (2, 100, 1, 100)]
    assert [len(table.rows) for table in fitted(tables, 46)] == [2, 13, 1, 14]
    assert [len(table.rows) for table in fitted(tables, 5)] == [2, 4, 1, 5]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (count(None), "-"), (count(99_999), "99999"), (count(1_234_567), "1234.6k"), (count(5e8), "500.0M"),
        (rate(0.25), "0.2"), (rate(0.0), "0"), (rate(250.7), "251"),
        (size(None), "-"), (size(900), "900 B"), (size(5 << 20), "5.0 MiB"),
        (span(None), "-"), (span(59), "59s"), (span(7200), "2h"), (span(200_000), "2d"),
        (printable("a\u202eb\n"), "a\\u202eb\\n"),
    ],
)  # fmt: skip
def test_numbers_are_short(shown: str, text: str) -> None:
    assert shown == text
