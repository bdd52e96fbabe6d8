"""What it costs: memory for the ragged edge only, and work that does not grow with the backlog."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy

from postroad.now import Now
from postroad.queues.entry import QueueEntry
from postroad.queues.keys import Lanes
from postroad.queues.ranges import RangeSet
from postroad.queues.schedule import Schedule
from postroad.queues.share_partition import AckBatch
from tests.queues.shell import Shell


@contextmanager
def measured() -> Iterator[Callable[[], int]]:
    """Answers how many bytes more are in use."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_a_hundred_thousand_locks_of_one_record_each_stay_under_30_mb() -> None:
    shell = Shell(delivery_limit=0)
    partition, now = shell.partition, shell.now
    partition.extend(100_000, [QueueEntry(0, 99_999)], now)
    for turn in range(100_000):
        member = f"member-{turn % 50}"
        partition.acquire(member, 1, Now(now.ms + turn * 7919 % 100_003, now.wall_ms + turn))
    assert partition.in_flight == len(partition.locks) == 100_000
    with measured() as used:
        copied = deepcopy(partition)  # tracing allocations all along would take ten times as long
        assert copied.in_flight == 100_000
        assert used() < 30_000_000


def test_backlog_of_ten_million_records_costs_nothing() -> None:
    shell = Shell()
    partition, now = shell.partition, shell.now
    with measured() as used:
        for first in range(0, 10_000_000, 10_000):
            partition.extend(first + 10_000, [QueueEntry(first, first + 9_999)], now)
        assert partition.ready == 10_000_000
        for _ in range(1_000):
            got = partition.acquire("anna", 500, now)
            settlement = partition.acknowledge("anna", [AckBatch(*got[0][:2], (1,))], now)
            shell.log.clear()
            assert settlement.update is not None
            partition.ledger.apply(settlement.update)
            partition.settled(settlement, now)
        assert partition.start == 500_000
        assert used() < 50_000


def test_delayed_record_costs_no_more_than_30_bytes() -> None:
    schedule, chance = Schedule(), random.Random(7)
    with measured() as used:
        for offset in range(40_000):
            schedule.add(chance.randrange(10**9), offset, offset)
        assert used() < 40_000 * 30
    due = schedule.take_due(10**7, 10_000)
    assert 300 < len(due) < 500
    schedule.check()


def test_record_in_line_behind_others_of_its_key_costs_no_more_than_20_bytes() -> None:
    lanes = Lanes()
    with measured() as used:
        for offset in range(0, 80_000, 2):
            lanes.join(offset, offset, b"hot")
        assert used() < 40_000 * 20
    assert lanes.drop_below(40_001) == [0]
    assert (lanes.entries, lanes.waiting) == (19_999, 19_999)
    assert lanes.leave(0) == 40_002
    lanes.check()


def test_range_of_a_ragged_set_costs_no_more_than_24_bytes() -> None:
    ranges, offsets = RangeSet(), list(range(0, 80_000, 2))
    random.Random(7).shuffle(offsets)
    with measured() as used:
        for offset in offsets:
            ranges.add(offset, offset)
        assert used() < len(offsets) * 24
    for offset in range(1, 80_000, 2):
        ranges.add(offset, offset)
    assert list(ranges) == [(0, 79_999)]


def test_names_of_tenants_that_are_gone_are_forgotten() -> None:
    shell = Shell(fair=True)
    partition = shell.partition
    for turn in range(24_000):
        partition.extend(turn + 1, [QueueEntry(turn, turn, None, b"tenant-%d" % turn)], shell.now)
        partition.acquire("anna", 1, shell.now)
        settlement = partition.acknowledge("anna", [AckBatch(turn, turn, (1,))], shell.now)
        assert settlement.update is not None
        partition.ledger.apply(settlement.update)
        partition.settled(settlement, shell.now)
    assert len(partition.tenants) <= 20_100  # who was served lately is remembered, and no one else
    assert not partition.backlog.traits.rows
    partition.check()


def test_expiry_of_many_locks_is_done_in_pieces() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 24_999))
    for _ in range(25_000):
        shell.partition.acquire("anna", 1, shell.now)
    late = shell.now._replace(ms=shell.now.ms + 100)
    sizes = []
    while (due := shell.partition.next_deadline()) is not None and due <= late.ms:
        settlement = shell.partition.expire(late)
        assert settlement is not None
        sizes.append(len(settlement.rows))
    assert sizes == [10_000, 10_000, 5_000]
