"""Duplicates: what repeats an id within a time is never delivered, whatever happens in between."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.broker.subscriptions.duplicates import Duplicates
from postroad.broker.subscriptions.queue import Queue
from postroad.queues.update import Key
from postroad.wire.records import Record, encode_batch
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, configure, refuse_writes_of_state
from tests.clients.share_session import Error, Fate, Word, one, session
from tests.clients.wait import until
from tests.faults.raw import send_batch

WINDOW = 100

# --- the rule, against the whole of a log ----------------------------------------------------------

Told = tuple[bytes, int]  # id, timestamp; the offset is its place

ids = st.sampled_from([b"a", b"b", b"c"])
steady = st.lists(st.tuples(ids, st.integers(0, 80)), max_size=40).map(
    lambda steps: [(each, sum(step for _, step in steps[: n + 1])) for n, (each, _) in enumerate(steps)]
)
jumpy = st.lists(st.tuples(ids, st.integers(-50, 400)), max_size=40)


def now_ms() -> int:
    return int(time.time() * 1000)


def firsts_of(log: list[Told]) -> dict[int, int | None]:
    """The naive way: for each offset that of the message it repeats."""
    repeats: dict[int, int | None] = {}
    for offset, (identity, timestamp) in enumerate(log):
        near = [
            other
            for other in range(offset)
            if log[other][0] == identity and repeats[other] is None and timestamp - log[other][1] < WINDOW
        ]
        repeats[offset] = near[-1] if near else None
    return repeats


def decided(duplicates: Duplicates, log: list[Told], begin: int = 0) -> list[bool]:
    return [duplicates.is_duplicate(log[at][0], at, log[at][1]) for at in range(begin, len(log))]


@settings(max_examples=300, deadline=None)
@given(log=steady)
def test_what_is_a_duplicate_follows_from_the_log(log: list[Told]) -> None:
    duplicates = Duplicates(WINDOW)
    duplicates.begin(0, None)
    assert decided(duplicates, log) == [first is not None for first in firsts_of(log).values()]


@settings(max_examples=300, deadline=None)
@given(log=jumpy, data=st.data())
def test_x1_a_duplicate_repeats_a_message_that_was_delivered(log: list[Told], data: st.DataObject) -> None:
    """Whatever the timestamps are, wherever reading begins, and however few ids are remembered."""
    begin = data.draw(st.integers(0, len(log)))
    frontier = data.draw(st.integers(begin, len(log)))
    duplicates = Duplicates(WINDOW, ids_max=data.draw(st.integers(1, 5)))
    duplicates.begin(begin, data.draw(st.none() | st.integers(-50, 400)))
    for offset in range(begin, frontier):
        duplicates.remember(log[offset][0], offset, log[offset][1])
    delivered = list(range(frontier))
    for offset, duplicate in enumerate(decided(duplicates, log, frontier), frontier):
        if duplicate:
            assert any(
                log[other][0] == log[offset][0] and abs(log[other][1] - log[offset][1]) < WINDOW
                for other in delivered
            )
        else:
            delivered.append(offset)


@settings(max_examples=300, deadline=None)
@given(log=steady, data=st.data())
def test_whoever_reads_again_never_takes_for_a_duplicate_what_is_none(
    log: list[Told], data: st.DataObject
) -> None:
    """And finds every duplicate but those of ids that are repeated without a pause."""
    repeats = firsts_of(log)
    frontier = data.draw(st.integers(0, len(log)))
    since = (log[frontier][1] if frontier < len(log) else 0) - 2 * WINDOW
    begin = next((at for at, (_, timestamp) in enumerate(log) if timestamp >= since), frontier)
    duplicates = Duplicates(WINDOW)
    duplicates.begin(min(begin, frontier), since if begin else None)
    for offset in range(begin, frontier):
        duplicates.remember(log[offset][0], offset, log[offset][1])
    for offset, duplicate in enumerate(decided(duplicates, log, frontier), frontier):
        if duplicate != (repeats[offset] is not None):
            assert not duplicate, "lost"
            assert not has_pause(log, offset), "delivered twice"
            break  # from here on this one counts


def has_pause(log: list[Told], offset: int) -> bool:
    """Whether the id's repetitions go back, without a pause, no further than the second window before."""
    times = [timestamp for identity, timestamp in log[: offset + 1] if identity == log[offset][0]]
    earliest = times[-1]
    for each in reversed(times):
        if earliest - each >= WINDOW:
            break
        earliest = each
    return times[-1] - earliest < WINDOW


def test_ids_whose_time_is_over_are_forgotten() -> None:
    duplicates = Duplicates(WINDOW)
    duplicates.begin(0, None)
    for number in range(10_000):
        assert not duplicates.is_duplicate(b"%d" % number, number, number)
    assert len(duplicates) == WINDOW


def test_x2_ids_beyond_the_bound_are_forgotten_oldest_first() -> None:
    duplicates = Duplicates(WINDOW, ids_max=3)
    duplicates.begin(0, None)
    for offset, identity in enumerate((b"a", b"b", b"c", b"d")):
        assert not duplicates.is_duplicate(identity, offset, 0)
    assert [duplicates.is_duplicate(identity, 9, 0) for identity in (b"d", b"c", b"b", b"a")] == [
        *(True, True, True, False)
    ]


def test_one_odd_timestamp_makes_no_one_forgotten() -> None:
    duplicates = Duplicates(WINDOW)
    duplicates.begin(0, None)
    for offset in range(10):
        duplicates.is_duplicate(b"%d" % offset, offset, 1000)
    assert not duplicates.is_duplicate(b"odd", 10, 10**15)
    assert [duplicates.is_duplicate(b"%d" % number, 11, 1000) for number in range(2, 10)] == [True] * 8


# --- on a node ---------------------------------------------------------------------------------------


def publish(running: Running, *messages: tuple[str, int], key: bytes | None = None) -> None:
    """(id, seconds from the node's start) of each message, all in one batch; the value is the id."""
    records = [
        Record(
            at, running.began_ms + 1000 * seconds, key, name.encode(), [("postroad-dedup-id", name.encode())]
        )
        for at, (name, seconds) in enumerate(messages)
    ]
    with running.connect() as connection:
        assert send_batch(connection, "jobs", encode_batch(records)).error_code == 0


def begin(running: Running, **configs: Any) -> None:
    running.create("jobs")
    configure(running, postroad_deduplicate_ms=60_000, **configs)


def queue_of(running: Running) -> Queue:
    queue = running.node.subscriptions.queue_in_use(Key(GROUP, running.node.image.topics["jobs"].id, 0))
    assert queue is not None
    return queue


def seek(running: Running, offset: int) -> None:
    topic_id = running.node.image.topics["jobs"].id
    running.run(running.node.subscriptions.administration.reset(Key(GROUP, topic_id, 0), offset))


def test_a_message_whose_id_was_there_shortly_before_is_not_delivered(start: Callable[..., Running]) -> None:
    running = start()
    begin(running)
    long_id = "x" * 128
    publish(running, ("a", 0), ("b", 0), ("a", 1), (long_id, 1), (long_id + "y", 1), (long_id, 2))
    publish(running, ("a", 59), ("a", 60), ("a", 61))
    running.publish("jobs", b"without an id", b"without an id")
    with session(running.bootstrap, GROUP, "jobs") as member:
        found = member.fetch_some().offsets
        assert found == [0, 1, 3, 4, 7, 9, 10]
        words = [one(offset, Fate.ACCEPT) for offset in found]
        assert member.acknowledge(*words) == Error.NONE
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        assert ledger.start == 11, "they count as done"
        publish(running, ("a", 62))
        assert member.fetch(wait_ms=100).held == []
        until(lambda: ledger.start == 12, "also if nobody settles anything after it")


def test_duplicates_met_while_the_last_accept_is_on_its_way_do_not_stay_in_the_lag(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="sync")
    begin(running, share_record_lock_duration_ms=600_000)  # no lock ends: nothing else lets the queue look
    publish(running, ("a", 0))
    with ExitStack() as stack:
        first, second = (stack.enter_context(session(running.bootstrap, GROUP, "jobs")) for _ in range(2))
        assert second.fetch(max_records=0).error == Error.NONE
        assert first.fetch_some().offsets == [0]
        disk = refuse_writes_of_state(running)
        publish(running, ("a", 1), ("a", 2))
        disk.gate.clear()
        accepted = stack.enter_context(ThreadPoolExecutor(1)).submit(first.acknowledge, one(0, Fate.ACCEPT))
        core = queue_of(running).core
        until(lambda: core.is_settling, "the accept is on its way")
        assert second.fetch().held == []
        assert core.frontier == 3, "it has met the duplicates"
        disk.gate.set()
        assert accepted.result(30) == Error.NONE
        until(lambda: core.ledger.start == 3, "nothing is left to be done")


def test_duplicates_behind_a_message_that_became_a_dead_letter_do_not_stay_in_the_lag(
    start: Callable[..., Running],
) -> None:
    running = start()
    begin(running)
    publish(running, ("a", 0), ("a", 1))
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0]
        assert member.acknowledge(one(0, Fate.REJECT)) == Error.NONE
        until(lambda: queue_of(running).core.ledger.start == 2, "nothing is left to be done")


def test_duplicates_do_not_stay_in_the_lag_though_the_state_could_not_be_written_at_first(
    start: Callable[..., Running],
) -> None:
    running = start()
    begin(running)
    publish(running, ("a", 0))
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0]
        assert member.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE
        disk = refuse_writes_of_state(running)
        disk.fail("append", "/ledger/", errno.ENOSPC)
        publish(running, ("a", 1))
        assert member.fetch().held == []
        until(lambda: disk.refusals, "it was tried")
        disk.heal()
        until(lambda: queue_of(running).core.ledger.start == 2, "it is tried again")


def test_duplicates_are_known_after_a_restart(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        begin(running)
        publish(running, ("old", -200), ("a", 0), ("b", 0), ("b", 1))
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [0, 1, 2]
            assert member.acknowledge(Word(0, 1, [Fate.ACCEPT])) == Error.NONE
    with running_node(tmp_path) as running:
        publish(running, ("a", 5), ("b", 5), ("old", 5), ("a", 61))
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert [(held.offset, held.value) for held in member.fetch_some().held] == [
                *((2, b"b"), (6, b"old"), (7, b"a"))
            ]
            assert member.acknowledge(one(2, Fate.ACCEPT), Word(6, 7, [Fate.ACCEPT])) == Error.NONE
            assert running.node.subscriptions.ledgers(GROUP)[0].start == 8


def test_much_that_lies_before_the_frontier_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.subscriptions.scanner.SCAN_BYTES", 2000)
    with running_node(tmp_path) as running:
        begin(running)
        for number in range(50):
            publish(running, *((f"{number}-{each}", 0) for each in range(20)))
        with session(running.bootstrap, GROUP, "jobs") as member:
            taken = 0
            while taken < 1000:
                last = member.fetch_some().offsets[-1]
                assert member.acknowledge(Word(taken, last, [Fate.ACCEPT])) == Error.NONE
                taken = last + 1
    with running_node(tmp_path) as running:
        publish(running, ("0-0", 5), ("49-19", 5), ("25-7", 5), ("new", 5))
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [1003]


def test_seek_back_delivers_firsts_again_and_no_duplicates(start: Callable[..., Running]) -> None:
    running = start()
    begin(running)
    publish(running, ("a", 0), ("b", 1), ("a", 2), ("c", 3), ("b", 4))
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0, 1, 3]
        seek(running, 0)
        assert member.fetch_some().offsets == [0, 1, 3]
        seek(running, 1)
        assert member.fetch_some().offsets == [1, 3], "2 repeats what lies before"
        seek(running, 5)
        publish(running, ("c", 5), ("d", 6))
        assert member.fetch_some().offsets == [6]


def test_duplicates_hold_up_nobody_where_keys_keep_their_order(start: Callable[..., Running]) -> None:
    running = start()
    begin(running, postroad_order="key")
    publish(running, ("a", 0), ("a", 1), ("b", 2), ("b", 3), ("c", 4), key=b"same")
    with session(running.bootstrap, GROUP, "jobs") as member:
        for offset in (0, 2, 4):
            assert member.fetch_some().offsets == [offset]
            assert member.fetch(wait_ms=20).held == []
            assert member.acknowledge(one(offset, Fate.ACCEPT)) == Error.NONE
        assert running.node.subscriptions.ledgers(GROUP)[0].start == 5


def test_another_order_or_another_time_looks_at_the_log_again(start: Callable[..., Running]) -> None:
    running = start()
    begin(running)
    publish(running, ("a", 0), ("a", 1), ("b", 2), ("a", 30), ("b", 70), key=b"same")
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some(max_records=1).offsets == [0]
        configure(running, postroad_order="key")
        assert member.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE
        assert member.fetch_some().offsets == [2]
        configure(running, postroad_order="none", postroad_deduplicate_ms=20_000)
        assert member.fetch_some().offsets == [3, 4]


def test_what_is_in_flight_may_be_settled_though_duplicates_are_left_out_from_now_on(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    configure(running)
    publish(running, ("a", 0), ("a", 1), ("a", 2), ("b", 3))
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some(max_records=2).offsets == [0, 1]
        configure(running, postroad_deduplicate_ms=60_000)
        assert member.fetch_some().offsets == [3]
        topic_id = running.node.image.topics["jobs"].id
        queue = running.node.subscriptions.queue(GROUP, topic_id, 0)
        assert queue is not None
        running.on_loop(queue.core.check)
        assert member.acknowledge(Word(0, 1, [Fate.ACCEPT]), one(3, Fate.ACCEPT)) == Error.NONE
        running.on_loop(queue.core.check)
        assert queue.core.ledger.start == 4


def test_what_is_acknowledged_is_kept_for_as_long_as_it_tells_duplicates(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs", postroad_retention="acknowledged")
        configure(running, postroad_deduplicate_ms=60_000)
        publish(running, ("long ago", -200))
        publish(running, ("a", -5))
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [0, 1]
            assert member.acknowledge(Word(0, 1, [Fate.ACCEPT])) == Error.NONE
        partition = running.partition("jobs")
        running.on_loop(lambda: running.node.housekeeping.expire(partition))
        assert partition.log.start_offset == 1
    with running_node(tmp_path) as running:
        publish(running, ("a", 0), ("b", 0))
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [3]


def test_a_lone_consumer_gets_what_lies_behind_many_delayed_messages(start: Callable[..., Running]) -> None:
    """Without anything that wakes it: each look is short, and the next one follows."""
    running = start()
    running.create("jobs")
    configure(running)
    delayed = [("postroad-delay-ms", b"3600000")]
    with running.connect() as connection:
        for _ in range(60):
            records = [Record(at, now_ms(), None, b"x" * 1000, delayed) for at in range(100)]
            assert send_batch(connection, "jobs", encode_batch(records)).error_code == 0
    running.publish("jobs", b"now")
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch(wait_ms=20_000).offsets == [6000]
