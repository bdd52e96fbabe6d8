"""A partition that is restored from a snapshot knows what one knows that has read the whole log again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.now import Now
from postroad.queues import schedule_snapshot
from postroad.queues.acknowledgement import ACCEPT, REJECT, RELEASE, AckBatch
from postroad.queues.entry import UNREADABLE, QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.ledger import Ledger
from postroad.queues.settings import Order, QueueSettings
from postroad.queues.share_partition import SharePartition
from postroad.queues.update import Key, Update

WALL = 1_700_000_000_000
BEFORE = Now(1_000_000, WALL)
AFTER = Now(50, WALL + 5_000)  # the machine was started anew meanwhile

delays = st.sampled_from([0, 0, 2_000, 4_000, 60_000, 60_000, 90_000])
logs = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), delays), min_size=1, max_size=15)
said = st.lists(st.sampled_from([ACCEPT, RELEASE, REJECT, None]), max_size=12)


def entries_of(log: list[tuple[int, int, int]]) -> tuple[list[QueueEntry], int]:
    entries, offset = [], 0
    for gap, count, delay_ms in log:
        first = offset + gap
        offset = first + count
        entries.append(QueueEntry(first, offset - 1, deliver_at_ms=WALL + delay_ms if delay_ms else 0))
    return entries, offset


def partition_of(ledger: Ledger, **changes: object) -> SharePartition:
    return SharePartition(ledger, QueueSettings(**changes), Holdings(), lambda: 0.0)  # type: ignore[arg-type]


def new_ledger() -> Ledger:
    ledger = Ledger(Key("workers", bytes(16), 0))
    ledger.apply(Update(1, start=0))
    return ledger


def settle_some(partition: SharePartition, words: list[int | None], now: Now) -> None:
    for word in words:
        acquired = partition.acquire("member", 1, now)
        if not acquired or word is None:
            return
        first, last, _ = acquired[0]
        settlement = partition.acknowledge("member", [AckBatch(first, last, [word])], now)
        assert settlement.update is not None
        partition.ledger.apply(settlement.update)
        partition.settled(settlement, now)


def places(partition: SharePartition, now: Now) -> dict[int, int]:
    """Each message that is known, and when it can go out; 0: now."""
    partition.check()
    partition.backlog.wake(now.ms)
    ready = {at: 0 for first, last in partition.backlog.pool.each() for at in range(first, last + 1)}
    rows = list(partition.backlog.schedule)
    return ready | {at: time for time, first, last in rows for at in range(first, last + 1)}


@settings(max_examples=300, deadline=None)
@given(log=logs, before=said, since=said, more=logs)
def test_what_is_restored_is_what_reading_the_log_again_tells(
    log: list[tuple[int, int, int]],
    before: list[int | None],
    since: list[int | None],
    more: list[tuple[int, int, int]],
) -> None:
    ledger = new_ledger()
    running = partition_of(ledger)
    entries, upto = entries_of(log)
    running.extend(upto, entries, BEFORE)
    settle_some(running, before, BEFORE)
    parts = schedule_snapshot.take(running, BEFORE)
    assert parts is not None
    settle_some(running, since, Now(BEFORE.ms + 3_000, WALL + 3_000))
    snapshot = schedule_snapshot.read(b"".join(parts), AFTER)
    assert snapshot is not None

    restored, read_again = partition_of(ledger), partition_of(ledger)
    if not schedule_snapshot.restore(restored, snapshot, AFTER):
        assert ledger.start >= upto, "it told nothing new"
        return
    begin = ledger.start
    read_again.extend(upto, [entry for entry in entries if entry.last >= begin], AFTER)
    assert places(restored, AFTER) == places(read_again, AFTER)
    further = [
        entry._replace(first=entry.first + upto, last=entry.last + upto) for entry in entries_of(more)[0]
    ]
    for partition in (restored, read_again):
        partition.extend(further[-1].last + 1, further, AFTER)
    assert places(restored, AFTER) == places(read_again, AFTER)
    assert restored.in_flight_ranges(0, upto) is not None, "it has seen the log up to there"


def test_only_what_is_known_by_times_alone_has_a_snapshot() -> None:
    expiring = partition_of(new_ledger())
    expiring.extend(1, [QueueEntry(0, 0, expires_at_ms=WALL + 1_000)], BEFORE)
    assert schedule_snapshot.take(expiring, BEFORE) is None
    doomed = partition_of(new_ledger())
    doomed.extend(1, [QueueEntry(0, 0, expires_at_ms=UNREADABLE)], BEFORE)
    assert schedule_snapshot.take(doomed, BEFORE) is None, "it is being archived"
    for changes in ({"order": Order.KEY}, {"fair": True}):
        assert schedule_snapshot.take(partition_of(new_ledger(), **changes), BEFORE) is None


def test_snapshot_of_another_generation_or_order_is_of_no_use() -> None:
    running = partition_of(new_ledger())
    running.extend(9, [QueueEntry(0, 8, deliver_at_ms=WALL + 60_000)], BEFORE)
    parts = schedule_snapshot.take(running, BEFORE)
    assert parts is not None
    snapshot = schedule_snapshot.read(b"".join(parts), AFTER)
    assert snapshot is not None
    moved = new_ledger()
    moved.apply(Update(2, start=0))
    assert not schedule_snapshot.restore(partition_of(moved), snapshot, AFTER)
    assert not schedule_snapshot.restore(partition_of(new_ledger(), order=Order.KEY), snapshot, AFTER)
    assert schedule_snapshot.restore(partition_of(new_ledger()), snapshot, AFTER)


def snapshot_of(partition: SharePartition) -> schedule_snapshot.Snapshot:
    parts = schedule_snapshot.take(partition, BEFORE)
    assert parts is not None
    snapshot = schedule_snapshot.read(b"".join(parts), AFTER)
    assert snapshot is not None
    return snapshot


def test_snapshot_without_what_the_ledger_does_not_know_as_done_is_of_no_use() -> None:
    """The subscription was deleted and made anew, or an accept that it tells of was lost with the state."""
    running = partition_of(new_ledger())
    later = QueueEntry(5, 8, deliver_at_ms=WALL + 60_000)
    running.extend(9, [QueueEntry(0, 4), later], BEFORE)
    settle_some(running, [RELEASE, ACCEPT, REJECT, ACCEPT, None], BEFORE)
    snapshot = snapshot_of(running)
    assert schedule_snapshot.restore(partition_of(running.ledger), snapshot, AFTER)
    anew = partition_of(new_ledger())
    assert not schedule_snapshot.restore(anew, snapshot, AFTER)
    anew.extend(9, [QueueEntry(0, 4), later], AFTER)
    assert places(anew, AFTER).keys() == set(range(9)), "all of it is read"


def test_what_was_held_behind_the_frontier_is_not_ready_before_it_is_met() -> None:
    """Locks stay where they are when the log is read again from the start on."""
    running = partition_of(new_ledger(), order=Order.KEY)
    running.extend(8, [QueueEntry(at, at, b"%d" % at) for at in range(8)], BEFORE)
    running.acquire("member", 8, BEFORE)
    running.change_settings(QueueSettings())
    running.extend(4, [QueueEntry(0, 3)], BEFORE)
    restored = partition_of(running.ledger)
    assert schedule_snapshot.restore(restored, snapshot_of(running), AFTER)
    assert [tuple(each)[:2] for each in restored.acquire("member", 8, AFTER)] == [(0, 3)]
    restored.extend(8, [QueueEntry(4, 7)], AFTER)
    assert places(restored, AFTER).keys() == set(range(4, 8)), "each is in one place"


def test_what_is_no_snapshot_is_none() -> None:
    running = partition_of(new_ledger())
    running.extend(9, [QueueEntry(0, 8, deliver_at_ms=WALL + 60_000)], BEFORE)
    whole = b"".join(schedule_snapshot.take(running, BEFORE) or [])
    for wrong in (b"", whole[:-1], whole + b"x", b"NONE" + whole[4:]):
        assert schedule_snapshot.read(wrong, AFTER) is None
