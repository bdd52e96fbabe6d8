"""The state of subscriptions on a node: what is written of it, and what a start makes of that."""

from __future__ import annotations

import errno
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from postroad.wire.batch import walk
from tests.broker.failing_disk import put_back
from tests.broker.harness import Running, running_node
from tests.broker.test_forgotten_topics import poll, poll_some, subscribed
from tests.broker.test_queues import (
    GROUP,
    configure,
    ledger_of,
    publish_together,
    refuse_writes_of_state,
    settle_as,
)
from tests.clients.share_session import Error, Fate, Word, one, session
from tests.clients.wait import until

SNAPSHOT_OFTEN: Final[dict[str, Any]] = {
    "groups_share_state_snapshot_bytes": 10,
    "groups_share_state_prune_records": 1,
}


def snapshot_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the last one was."""
    monkeypatch.setattr("postroad.broker.subscriptions.states.SNAPSHOT_FACTOR", 0)


def test_s4_accept_that_was_under_way_when_a_snapshot_was_made_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_always(monkeypatch)
    with running_node(tmp_path, **SNAPSHOT_OFTEN) as running, ThreadPoolExecutor() as threads:
        key = subscribed(running)
        publish_together(running, "jobs", 3)
        assert poll_some(running, key, "gateway") == [0, 1, 2]
        disk, state = refuse_writes_of_state(running), ledger_of(running)
        disk.gate.clear()
        first, accepts = state.log.written_offset, []
        for offset in (2, 1):  # the second is written while the first is synced
            accepts.append(threads.submit(settle_as, running, key.topic_id, "gateway", offset))
            until(lambda: state.log.written_offset == first + len(accepts), "it is written")
            until(lambda: state.syncing, "it waits for the disk")
        disk.gate.set()
        assert [accept.result(20) for accept in accepts] == [Error.NONE] * 2
        until(lambda: state.log.start_offset == first + 1, "all before the second accept is deleted")
    with running_node(tmp_path) as running:
        assert poll_some(running, key, "another gateway") == [0]


def test_large_state_is_written_in_parts_of_which_none_holds_up_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_always(monkeypatch)
    with running_node(tmp_path, durability_flush="os", **SNAPSHOT_OFTEN) as running:
        subscribed(running)
        configure(running, share_record_lock_duration_ms=600_000)
        state = ledger_of(running).log
        for _ in range(6):
            publish_together(running, "jobs", 10_000)
        with session(running.bootstrap, GROUP, "jobs") as member:
            held = 0
            while held < 60_000:
                held += len(member.fetch_some(max_records=60_000).held)
            for first in range(0, 60_000, 10_000):
                fates = [Fate.RELEASE, Fate.ACCEPT] * 5_000
                assert member.acknowledge(Word(first, first + 9_999, fates)) == Error.NONE
            all_of_it = state.end_offset
            while (
                state.start_offset < all_of_it
            ):  # each update is followed by a snapshot, if none is under way
                (offset,) = member.fetch_some(max_records=1).offsets
                assert member.acknowledge(one(offset, Fate.ACCEPT)) == Error.NONE
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        assert len(ledger.done) > 20_000
        assert len(batch_sizes(running)) > 1  # parts that are ready in one turn share a batch
        assert max(batch_sizes(running)) < 1_000_000
        before = running.on_loop(ledger.snapshot)
    with running_node(tmp_path, durability_flush="os") as running:
        until(lambda: running.node.subscriptions.loaded, "its state is loaded")
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        assert running.on_loop(ledger.snapshot) == before


def test_messages_that_take_the_offsets_of_lost_ones_are_delivered(tmp_path: Path) -> None:
    with running_node(tmp_path, durability_flush="os") as running:
        subscribed(running)
        running.publish("jobs", *[b"old"] * 20)
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert len(member.fetch_some().held) == 20
            accepts = (Word(first, last, [Fate.ACCEPT]) for first, last in ((0, 2), (4, 14), (16, 19)))
            releases = (one(offset, Fate.RELEASE) for offset in (3, 15))
            assert member.acknowledge(*sorted([*accepts, *releases])) == Error.NONE
        segment, middle = segment_of(running), position_of(running, 10)
    os.truncate(segment, middle)  # as a power cut may leave it where nothing was synced
    for _ in range(2):
        with running_node(tmp_path, durability_flush="os") as running:
            assert running.partition("jobs").high_watermark == 10
    with running_node(tmp_path, durability_flush="os") as running:
        running.publish("jobs", *[b"new"] * 15)
        with session(running.bootstrap, GROUP, "jobs") as member:
            found = {held.offset: held.delivery for held in member.fetch_some().held}
        assert found == {3: 2} | dict.fromkeys(range(10, 25), 1)


def test_nothing_is_passed_over_while_it_can_not_be_written_that_messages_were_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.1)
    with running_node(tmp_path) as running:
        key = subscribed(running)
        running.publish("jobs", *[b"old"] * 5)
        assert poll_some(running, key, "gateway") == [0, 1, 2, 3, 4]
        assert [settle_as(running, key.topic_id, "gateway", n) for n in range(5)] == [Error.NONE] * 5
        segment, middle = segment_of(running), position_of(running, 2)
    os.truncate(segment, middle)
    aside = tmp_path / "aside"
    segment.parent.rename(aside)
    segment.parent.write_bytes(b"no directory")
    with running_node(tmp_path) as running:
        assert running.node.partitions.offline() == [("jobs", 0)]
        disk = refuse_writes_of_state(running)
        disk.fail("append", "", errno.ENOSPC)
        put_back(running, aside, segment.parent)
        until(lambda: not running.node.partitions.offline(), "it is back")
        running.publish("jobs", *[b"new"] * 5)
        assert poll(running, key, "gateway") == []
        disk.heal()
        until(lambda: running.node.subscriptions.ledgers(GROUP)[0].start == 2, "it is written")
        assert poll_some(running, key, "gateway") == [2, 3, 4, 5, 6]


def segment_of(running: Running) -> Path:
    (found,) = Path(running.partition("jobs").log.directory).glob("*.log")
    return found


def position_of(running: Running, offset: int) -> int:
    found = running.partition("jobs").read(offset, 1)
    assert found is not None
    return found.position


def batch_sizes(running: Running) -> list[int]:
    log = ledger_of(running).log
    found = log.read(log.start_offset, 1 << 30, log.written_offset)
    assert found is not None
    return [header.size for _, header in walk(memoryview(found.file.read(found.position, found.length)))]


def test_power_cut_that_took_the_end_of_a_log_keeps_no_subscription_from_being_set_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    groups = [f"g{n}" for n in range(4)]
    with running_node(tmp_path, durability_flush="os") as running:
        running.create("jobs")
        for group in groups:
            configure(running, group, postroad_topics="jobs")
        running.publish("jobs", *[b"old"] * 20)
        for group in groups[:2]:
            with session(running.bootstrap, group, "jobs") as member:
                assert len(member.fetch_some().held) == 20
                assert member.acknowledge(Word(0, 19, [Fate.ACCEPT])) == Error.NONE
        segment, middle = segment_of(running), position_of(running, 10)
    os.truncate(segment, middle)
    with running_node(tmp_path, durability_flush="os") as running:
        running.publish("jobs", *[b"new"] * 5)
        for number, group in enumerate(groups):
            with session(running.bootstrap, group, "jobs") as member:
                found = {held.offset for held in member.fetch_some().held}
            assert found == set(range(10 if number < 2 else 0, 15)), group
    assert not [record for record in caplog.records if record.exc_info], "no task has failed"


def test_stop_while_members_hold_messages_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_node(tmp_path) as running:
        subscribed(running)
        publish_together(running, "jobs", 3)
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert len(member.fetch_some().held) == 3
            running.stop()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
