"""A topic or partition that comes after its subscription is held from its first message, whatever state the
subscription's own state is in meanwhile."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from postroad.broker.replies import replied
from postroad.broker.subscriptions.states import QueueStates
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key
from postroad.system.workers import Workers
from postroad.wire.messages import create_partitions
from tests.broker.failing_disk import FailingDisk, put_back
from tests.broker.harness import WAIT_S, Running, running_node
from tests.broker.test_forgotten_topics import forget
from tests.broker.test_queues import GROUP, configure, refuse_writes_of_state
from tests.clients.share_session import Error, Fate, one, session
from tests.clients.wait import until
from tests.simulator.simulated_node import SimulatedNode

MESSAGES = [b"%d" % n for n in range(10)]


def test_topic_that_comes_while_the_state_is_being_loaded_is_held_from_its_first_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_node(tmp_path) as running:
        name_topics(running, "others, late")
    with loading(monkeypatch) as loaded, running_node(tmp_path) as running:
        create_and_publish(running, "late")
        loaded.set()
        assert held_of(running, "late") == MESSAGES


def test_partition_that_is_offline_when_its_topic_is_named_is_held_once_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.1)
    with running_node(tmp_path) as running:
        running.create("jobs")
        running.publish("jobs", b"before")
        home = Path(running.partition("jobs").log.directory)
    aside = tmp_path / "aside"
    home.rename(aside)
    home.write_bytes(b"no directory")
    with running_node(tmp_path) as running:
        name_topics(running, "jobs")
        assert ledgers(running) == []
        put_back(running, aside, home)
        until(lambda: [ledger.start for ledger in ledgers(running)] == [1], "it is held")


def test_topic_that_comes_while_the_state_can_not_be_written_is_held_from_its_first_message(
    start: Callable[..., Running],
) -> None:
    running = start()
    name_topics(running, "late")
    disk = full_disk(running)
    create_and_publish(running, "late")
    until(lambda: disk.refusals > 1, "it is tried again")
    disk.heal()
    assert held_of(running, "late") == MESSAGES


def test_topic_that_only_a_member_named_before_it_came_is_held_from_its_first_message(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    configure(running, share_auto_offset_reset="latest")
    with session(running.bootstrap, GROUP, "jobs") as member:
        member.subscribe("jobs", "late")
        disk = full_disk(running)
        create_and_publish(running, "late")
        disk.heal()
        assert held_of(running, "late") == MESSAGES


def test_topic_whose_ledger_was_not_written_before_a_restart_is_held_from_its_first_message(
    tmp_path: Path,
) -> None:
    with running_node(tmp_path) as running:
        name_topics(running, "late")
        full_disk(running)
        create_and_publish(running, "late")
    with running_node(tmp_path) as running:
        assert held_of(running, "late") == MESSAGES


def test_partition_whose_ledger_was_not_written_before_a_restart_is_held_from_its_first_message(
    tmp_path: Path,
) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs")
        running.publish("jobs", b"before")
        name_topics(running, "jobs")
        full_disk(running)
        widen(running, "jobs", 2)
        running.publish("jobs", *MESSAGES, partition=1)
    with running_node(tmp_path) as running:
        starts = lambda: {ledger.key.partition: ledger.start for ledger in ledgers(running)}  # noqa: E731
        until(lambda: len(starts()) == 2, "both partitions are held")
        assert starts() == {0: 1, 1: 0}


def test_topic_that_existed_is_held_from_the_moment_at_which_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs")
    with loading(monkeypatch) as loaded, running_node(tmp_path) as running:
        running.publish("jobs", b"before")
        with pytest.raises(AssertionError):  # the client hears that the state is not there yet
            name_topics(running, "jobs")
        running.publish("jobs", *MESSAGES)
        loaded.set()
        assert held_of(running, "jobs") == MESSAGES


def test_what_is_published_while_the_state_loads_is_held_though_its_ledger_is_yet_to_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs")
        running.publish("jobs", b"before")
        full_disk(running)
        with pytest.raises(AssertionError):
            name_topics(running, "jobs")
    with loading(monkeypatch) as loaded, running_node(tmp_path) as running:
        running.publish("jobs", *MESSAGES)
        loaded.set()
        assert held_of(running, "jobs") == MESSAGES


def test_retention_of_what_is_acknowledged_waits_for_a_subscription_without_a_ledger(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs", postroad_retention="acknowledged")
    name_topics(running, "jobs", "quick")
    running.publish("jobs", *MESSAGES)
    accept_all(running, "quick", "jobs")
    disk = full_disk(running)
    with pytest.raises(AssertionError):
        configure(running, "slow", share_auto_offset_reset="earliest", postroad_topics="jobs")
    assert start_after_retention(running, "jobs") == 0
    disk.heal()
    assert held_of(running, "jobs", "slow") == MESSAGES
    accept_all(running, "slow", "jobs")
    assert start_after_retention(running, "jobs") == len(MESSAGES)


def test_retention_of_what_is_acknowledged_waits_for_a_subscription_that_holds_other_partitions(
    start: Callable[..., Running],
) -> None:
    running = start()
    topic_id = running.create("jobs", partitions=2, postroad_retention="acknowledged")
    for group in ("quick", "slow"):
        with session(running.bootstrap, group, "jobs"):
            until(lambda: len(ledgers(running, group)) == 2, "both partitions are held")  # noqa: B023
    leaders = running.node.subscriptions.leaders
    running.run(replied(partial(leaders.remove, Key("slow", topic_id, 1))))  # as if it had not been made
    running.publish("jobs", *MESSAGES, partition=1)
    accept_all(running, "quick", "jobs", partition=1)
    assert start_after_retention(running, "jobs", 1) == 0


def test_late_topic_whose_state_was_forgotten_begins_where_new_ones_do(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate()
    name_topics(running, "jobs")
    create_and_publish(running, "jobs")
    assert held_of(running, "jobs") == MESSAGES
    running.run_for(60)
    assert forget(running) == 0, "nobody subscribes to it any more"
    running.stop()
    running.start()
    running.until(lambda: running.node.subscriptions.ledgers(GROUP))
    assert ledgers(running)[0].start == len(MESSAGES)


# --- what the tests are made of


@contextmanager
def loading(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nodes that are started here load the state of subscriptions when the event is set, and don't wait."""
    gate, load = threading.Event(), QueueStates.load

    async def load_later(states: QueueStates, workers: Workers) -> None:
        await asyncio.to_thread(gate.wait, WAIT_S)
        await load(states, workers)

    monkeypatch.setattr(QueueStates, "load", load_later)
    monkeypatch.setattr(Running, "load_wait_s", 0.01)
    monkeypatch.setattr("postroad.broker.subscriptions.ledgers.PREPARE_S", 0.1)
    try:
        yield gate
    finally:
        gate.set()
        monkeypatch.undo()


def name_topics(running: Running, names: str, group: str = GROUP) -> None:
    configure(running, group, share_auto_offset_reset="latest", postroad_topics=names)


def full_disk(running: Running) -> FailingDisk:
    """From now on no ledger can be written."""
    disk = refuse_writes_of_state(running)
    disk.fail("append", "/ledger/0", errno.ENOSPC)
    return disk


def create_and_publish(running: Running, topic: str) -> None:
    running.create(topic)
    running.publish(topic, *MESSAGES)


def widen(running: Running, topic: str, count: int) -> None:
    wanted = create_partitions.CreatePartitionsTopic(topic, count)
    request = create_partitions.CreatePartitionsRequest([wanted], timeout_ms=10_000)
    assert running.call(create_partitions, 3, request).results[0].error_code == 0


def ledgers(running: Running, group: str = GROUP) -> list[Ledger]:
    return running.on_loop(lambda: running.node.subscriptions.ledgers(group))


def held_of(running: Running, topic: str, group: str = GROUP) -> list[bytes | None]:
    """What a member gets, once the subscription holds the topic without anybody asking."""
    topic_id = running.node.image.topics[topic].id
    until(lambda: [one for one in ledgers(running, group) if one.key.topic_id == topic_id], "it is held")
    with running.session(group, topic) as member:
        found = member.fetch_some().held
        while len(found) < len(MESSAGES):
            found += member.fetch_some().held
    return [each.value for each in found]


def accept_all(running: Running, group: str, topic: str, partition: int = 0) -> None:
    with session(running.bootstrap, group, topic, partition=partition) as member:
        done = 0
        while done < len(MESSAGES):
            offsets = member.fetch_some().offsets
            assert member.acknowledge(*(one(offset, Fate.ACCEPT) for offset in offsets)) == Error.NONE
            done += len(offsets)


def start_after_retention(running: Running, topic: str, index: int = 0) -> int:
    partition = running.partition(topic, index)
    running.on_loop(lambda: running.node.housekeeping.expire(partition))
    return partition.log.start_offset
