"""The wall clock is set, or the machine slept: what messages ask for follows the clock, and nothing else."""

from __future__ import annotations

from postroad.queues.entry import QueueEntry
from postroad.queues.settings import Backoff, Order
from tests.queues.shell import ACCEPT, RELEASE, Shell

MINUTE, HOUR = 60_000, 3_600_000


def step(shell: Shell, ms: int) -> None:
    shell.now = shell.now._replace(wall_ms=shell.now.wall_ms + ms)
    shell.partition.clock_stepped(ms, shell.now)
    shell.partition.check()


def test_delayed_record_is_available_when_the_clock_says_so_however_it_came_there() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 4, deliver_at_ms=shell.now.wall_ms + MINUTE))
    step(shell, HOUR)
    assert shell.acquire(count=2) == [(0, 1)]
    shell.send(QueueEntry(5, 5, deliver_at_ms=shell.now.wall_ms + MINUTE))
    step(shell, -HOUR)
    shell.wait(HOUR)
    assert not shell.partition.ledger.done.contains(5)
    assert 5 not in [first for first, _ in shell.acquire("ben")]
    shell.wait(MINUTE)
    assert (5, 5) in shell.acquire("ben")


def test_backoff_and_locks_do_not_follow_the_wall_clock() -> None:
    shell = Shell(backoff=Backoff(MINUTE))
    shell.send(QueueEntry(0, 3))
    shell.acquire(count=2)
    shell.acknowledge(RELEASE, 0)
    step(shell, HOUR)
    assert shell.acquire("ben") == [(2, 3)], "one is held, one backs off"
    shell.acknowledge(ACCEPT, 1)
    shell.wait(MINUTE)
    assert (0, 0) in shell.acquire("ben")


def test_record_expires_by_the_clock_also_while_it_waits_in_line() -> None:
    shell = Shell(order=Order.KEY)
    later = shell.now.wall_ms + MINUTE
    shell.send(
        QueueEntry(0, 0, b"k"),
        QueueEntry(1, 1, b"k", expires_at_ms=later),
        QueueEntry(2, 2, b"k", deliver_at_ms=later),
    )
    shell.acquire()
    step(shell, HOUR)
    shell.acknowledge(ACCEPT, 0)
    assert shell.acquire() == []
    assert [dying.first for dying in shell.partition.ledger.dying] == [1]
    assert shell.acquire() == [(2, 2)]
