"""Queues on a node, seen from inside: what is durable when, cold data, refusing disks, snapshots."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from postroad.broker.partition import Partition
from postroad.queues.update import Key
from postroad.wire.messages import incremental_alter_configs, list_groups, share_acknowledge, share_fetch
from postroad.wire.records import Record, encode_batch
from postroad.wire.share_requests import write_private_tags
from tests.broker.failing_disk import FailingDisk, use_failing_disk
from tests.broker.harness import WAIT_S, Running, running_node
from tests.clients.share_session import LAST_EPOCH, Error, Fate, Session, Word, one, session
from tests.clients.wait import until
from tests.faults.raw import batch_of, send_batch
from tests.simulator.simulated_node import SimulatedNode

GROUP = "workers"
SET, GROUP_RESOURCE = 0, 32
NOT_AVAILABLE = 15


def configure(running: Running, group: str = GROUP, **configs: object) -> None:
    """`_` stands for a dot."""
    given = {"share.auto.offset.reset": "earliest"}
    given |= {name.replace("_", "."): str(value) for name, value in configs.items()}
    changes = [incremental_alter_configs.AlterableConfig(name, SET, value) for name, value in given.items()]
    resource = incremental_alter_configs.AlterConfigsResource(GROUP_RESOURCE, group, changes)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource], False)
    answer = running.call(incremental_alter_configs, 1, request).responses[0]
    assert answer.error_code == 0, answer.error_message


def publish_together(running: Running, topic: str, count: int, **fields: Any) -> None:
    with running.connect() as connection:
        values = [b"%d" % n for n in range(count)]
        assert send_batch(connection, topic, batch_of(*values, **fields)).error_code == 0


def publish_with_header(running: Running, topic: str, name: str, value: int, text: bytes = b"x") -> None:
    record = Record(0, int(time.time() * 1000), None, text, [(name, b"%d" % value)])
    with running.connect() as connection:
        assert send_batch(connection, topic, encode_batch([record])).error_code == 0


def ledger_of(running: Running, topic: str = "jobs", index: int = 0) -> Partition:
    """What subscriptions are done with there, as a log."""
    ledger = running.partition(topic, index).ledger
    assert ledger is not None
    return ledger


def refuse_writes_of_state(running: Running) -> FailingDisk:
    """From now on the disk under the state of subscriptions can be told to fail."""
    disk = FailingDisk()
    setattr(running.node.runtime, "disk", disk)  # noqa: B010  (for ledgers that come)
    for partition in running.node.partitions:
        if partition.ledger is not None:
            log = partition.ledger.log
            log.disk = log.active.disk = disk
            running.on_loop(log.active.let_file_go)
    return disk


def test_s7_message_that_is_not_committed_is_not_delivered(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("jobs")
    configure(running)
    with session(running.bootstrap, GROUP, "jobs") as member, running.connect() as producer:
        assert member.fetch().held == []
        disk.gate.clear()
        assert send_batch(producer, "jobs", batch_of(b"x"), acks=1).error_code == 0
        assert running.partition("jobs").log.written_offset == 1
        assert member.fetch(wait_ms=100).held == []
        disk.gate.set()
        assert member.fetch_some().offsets == [0]


def test_accept_is_answered_when_it_is_on_the_disk(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    running.create("jobs")
    configure(running)
    running.publish("jobs", b"x")
    disk = refuse_writes_of_state(running)
    with session(running.bootstrap, GROUP, "jobs") as member:
        member.fetch_some()
        disk.gate.clear()
        with ThreadPoolExecutor() as threads:
            try:
                accept = threads.submit(member.acknowledge, one(0, Fate.ACCEPT))
                until(lambda: ledger_of(running).syncing, "it waits for the disk")
                with pytest.raises(TimeoutError):
                    accept.result(0.2)
            finally:
                disk.gate.set()
            assert accept.result(WAIT_S) == Error.NONE


def test_accept_that_can_not_be_written_is_refused_and_the_lock_stays(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="os")
    running.create("jobs")
    configure(running)
    running.publish("jobs", b"x")
    disk = refuse_writes_of_state(running)
    with session(running.bootstrap, GROUP, "jobs") as member:
        member.fetch_some()
        disk.fail("append", "", errno.ENOSPC)
        assert member.acknowledge(one(0, Fate.ACCEPT)) == NOT_AVAILABLE
        disk.heal()
        assert member.fetch().held == [], "still held"
        assert member.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE


@pytest.mark.parametrize("flush", ["sync", "os"])
def test_queue_goes_on_where_it_was_after_a_restart(tmp_path: Path, flush: str) -> None:
    with running_node(tmp_path, durability_flush=flush) as running:
        running.create("jobs")
        configure(running)
        publish_together(running, "jobs", 10)
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == list(range(10))
            words = (Word(0, 1, [Fate.ACCEPT]), one(4, Fate.ACCEPT), Word(6, 7, [Fate.RELEASE]))
            assert member.acknowledge(*words) == Error.NONE
    with running_node(tmp_path, durability_flush=flush) as running:
        with session(running.bootstrap, GROUP, "jobs") as member:
            found = {held.offset: held.delivery for held in member.fetch_some().held}
        # Those that were released, and those that were held when the connection ended, were delivered once.
        assert found == {2: 2, 3: 2, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2}


def test_data_that_lay_on_the_disk_is_checked_before_it_is_delivered(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs")
        configure(running)
        for _ in range(20):
            publish_together(running, "jobs", 50)
    with running_node(tmp_path) as running:
        with session(running.bootstrap, GROUP, "jobs") as member:
            offsets: list[int] = []
            while len(offsets) < 1000:
                fetched = member.fetch_some(max_records=300)
                assert len(fetched.held) <= 300
                offsets += fetched.offsets
        assert offsets == list(range(1000))


@pytest.mark.parametrize("compression", [0, 1, 4])
def test_messages_of_one_batch_go_to_several_members_each_to_one(
    start: Callable[..., Running], compression: int
) -> None:
    running = start()
    running.create("jobs")
    configure(running)
    publish_together(running, "jobs", 30, compression=compression)
    with (
        session(running.bootstrap, GROUP, "jobs") as one_member,
        session(running.bootstrap, GROUP, "jobs") as other,
    ):
        found = []
        for member in (one_member, other, one_member, other):
            found += [(held.offset, held.value) for held in member.fetch_some(max_records=7).held]
        assert found == [(n, b"%d" % n) for n in range(28)]


def test_what_a_member_held_is_free_as_soon_as_its_connection_ends(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    configure(running, share_record_lock_duration_ms=600_000)
    running.publish("jobs", b"x")
    with session(running.bootstrap, GROUP, "jobs") as crashing:
        assert crashing.fetch_some().offsets == [0]
    with session(running.bootstrap, GROUP, "jobs") as other:
        assert [(held.offset, held.delivery) for held in other.fetch_some().held] == [(0, 2)]


def test_last_acknowledgements_count_though_the_members_good_bye_came_first(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    configure(running, share_record_lock_duration_ms=600_000)
    publish_together(running, "jobs", 2)
    with session(running.bootstrap, GROUP, "jobs") as leaving:
        assert leaving.fetch_some().offsets == [0, 1]
        leaving.leave()
        assert leaving.acknowledge(one(0, Fate.ACCEPT), epoch=LAST_EPOCH) == Error.NONE
        with session(running.bootstrap, GROUP, "jobs") as other:
            assert other.fetch_some().offsets == [1], "what it left open is there for others"


def test_session_that_was_taken_over_outlives_its_old_connection(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    configure(running, share_record_lock_duration_ms=600_000)
    with running.connect() as second:
        with session(running.bootstrap, GROUP, "jobs", member_id="me") as first:
            first.fetch()
            running.publish("jobs", b"x")
            again = Session(second, GROUP, "jobs", "me")
            assert again.fetch_some().offsets == [0]
        with session(running.bootstrap, GROUP, "jobs") as other:
            assert other.fetch(wait_ms=200).held == []
        assert again.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE


def test_at_most_once_message_is_done_before_it_is_sent(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_delivery="at-most-once")
    running.publish("jobs", b"a", b"b")
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some(max_records=1).offsets == [0]
        assert running.node.subscriptions.ledgers(GROUP)[0].start == 1
        assert member.acknowledge(one(0, Fate.RELEASE)) == Error.NONE, "whatever is said changes nothing"
        assert member.fetch_some().offsets == [1]
        assert member.fetch(wait_ms=100).held == []


def test_delayed_messages_do_not_hold_up_what_lies_behind_them(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate()
    running.create("jobs")
    configure(running)
    running.publish("jobs", *[b"later"] * 3, postroad_delay_ms=600_000)
    running.publish("jobs", b"now")
    with running.session(GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [3]
        assert member.acknowledge(one(3, Fate.ACCEPT)) == Error.NONE
        assert member.fetch(wait_ms=50).held == []
        published = running.world.now
        running.publish("jobs", b"soon", postroad_delay_ms=30_000)
        assert member.fetch(wait_ms=29_000).held == []
        assert member.fetch_some().offsets == [4], "whose time is over first"
        assert member.acknowledge(one(4, Fate.ACCEPT)) == Error.NONE
        assert running.world.now - published >= 30
        assert member.fetch(wait_ms=60_000).held == []
        running.run_for(510)
        delayed = member.fetch_some().offsets
        while len(delayed) < 3:
            delayed += member.fetch_some().offsets
        assert delayed == [0, 1, 2]


def test_changed_settings_hold_for_queues_in_use(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    configure(running)
    publish_together(running, "jobs", 10)
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert len(member.fetch_some(max_records=2).held) == 2
        configure(running, share_partition_max_record_locks=5, share_record_lock_duration_ms=12_345)
        fetched = member.fetch_some()
        assert (fetched.offsets, fetched.lock_ms) == ([2, 3, 4], 12_345)
        assert member.fetch(wait_ms=50).held == []
        configure(running, postroad_order="partition")
        assert member.acknowledge(Word(0, 4, [Fate.ACCEPT])) == Error.NONE
        assert member.fetch_some().offsets == [5]
        assert member.fetch(wait_ms=50).held == []


def test_state_is_written_as_a_whole_now_and_then_and_what_is_older_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.subscriptions.states.RECORDS_MAX", 60)
    often: dict[str, Any] = {"groups_share_state_snapshot_bytes": 500, "groups_share_state_prune_records": 10}
    with running_node(tmp_path, **often) as running:
        running.create("jobs")
        running.create("idle")
        configure(running, "idler", postroad_topics="idle")
        configure(running)
        publish_together(running, "jobs", 300)
        running.publish("idle", b"x")
        with session(running.bootstrap, "idler", "idle") as idler:
            assert idler.fetch_some().offsets == [0]
            assert idler.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert len(member.fetch_some().held) == 300
            for offset in range(0, 300, 3):  # holes, so that there is something to remember
                assert member.acknowledge(one(offset, Fate.ACCEPT)) == Error.NONE
        state = ledger_of(running).log
        until(lambda: state.start_offset > 0, "what snapshots tell is deleted")
        until(lambda: state.end_offset - state.start_offset < 100, "so that little is left")
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        until(lambda: ledger.attempts.rows, "what the member held is released")
        before = [running.on_loop(ledger.snapshot)]
    with running_node(tmp_path) as running:
        assert [ledger.snapshot() for ledger in running.node.subscriptions.ledgers(GROUP)] == before
        assert [ledger.start for ledger in running.node.subscriptions.ledgers("idler")] == [1]
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [n for n in range(300) if n % 3]


def test_subscription_without_members_holds_messages_from_its_creation_on(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        running.create("jobs")
        running.publish("jobs", b"before")
        configure(running, share_auto_offset_reset="latest", postroad_topics="jobs,later")
        running.publish("jobs", b"after")
        running.create("later")
        running.publish("later", b"first")
    with running_node(tmp_path) as running:
        for topic, value in (("jobs", b"after"), ("later", b"first")):
            with session(running.bootstrap, GROUP, topic) as member:
                assert [held.value for held in member.fetch_some().held] == [value]
        listed = running.call(list_groups, 5, list_groups.ListGroupsRequest(types_filter=["share"])).groups
        assert [group.group_id for group in listed] == [GROUP]


def test_deleted_topic_takes_its_queues_along(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_topics="jobs")
    running.publish("jobs", b"x")
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0]
        running.delete("jobs")
        until(lambda: not running.node.subscriptions.ledgers(GROUP), "its state goes")
        topic_id = running.create("jobs")
        until(lambda: running.node.subscriptions.ledgers(GROUP), "the new topic is held")
        assert running.node.subscriptions.ledgers(GROUP)[0].key == Key(GROUP, topic_id, 0)
        assert running.on_loop(lambda: running.node.subscriptions.subscription(GROUP).holdings.total) == 0


def test_dead_letters_that_cannot_be_copied_are_tried_again(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    disk = use_failing_disk(running)
    running.create(f"{GROUP}.dead")
    disk.fail("append", "", errno.ENOSPC)
    configure(running)
    running.publish("jobs", b"poison", b"good")
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0, 1]
        assert member.acknowledge(one(0, Fate.REJECT), one(1, Fate.ACCEPT)) == Error.NONE
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        until(lambda: f"{GROUP}.dead" in running.node.image.topics, "the topic is there")
        assert ledger.start == 0, "not done before its copy is"
        disk.heal()
        until(lambda: ledger.start == 2, "it is copied, and done")
    assert running.partition(f"{GROUP}.dead").high_watermark == 1


class Owned:
    """ShareFetch and ShareAcknowledge in the name of an owner: the generated codec, our tags behind it."""

    def __init__(self, api: ModuleType, owner: str, **tags: Any) -> None:
        self._api, self._tags = api, write_private_tags(owner=owner, **tags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def encode_request(self, body: Any, version: int) -> bytes:
        return bytes(self._api.encode_request(body, version)[:-1] + self._tags)


def test_owners_lock_outlives_its_connection_and_anybody_may_settle_in_its_name(
    start: Callable[..., Running],
) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running, share_record_lock_duration_ms=600_000)
    running.publish("jobs", b"a", b"b")
    assert acquire_as(running, topic_id, "gateway-1") == [0, 1]
    with session(running.bootstrap, GROUP, "jobs") as other:
        assert other.fetch(wait_ms=100).held == []
        assert settle_as(running, topic_id, "gateway-2", 0) == Error.INVALID_RECORD_STATE
        assert settle_as(running, topic_id, "gateway-1", 0) == Error.NONE
        assert settle_as(running, topic_id, "gateway-1", 0) == Error.INVALID_RECORD_STATE
        assert settle_as(running, topic_id, "gateway-1", 1) == Error.NONE
    assert running.node.subscriptions.ledgers(GROUP)[0].start == 2


@pytest.mark.parametrize("order", ["none", "key", "partition"])
def test_owners_accept_counts_over_a_restart_unless_somebody_else_has_the_message(
    tmp_path: Path, order: str
) -> None:
    with running_node(tmp_path) as running:
        topic_id = running.create("jobs")
        configure(running, postroad_order=order, share_record_lock_duration_ms=600_000)
        running.publish("jobs", b"a", b"b", b"c")
        found = acquire_as(running, topic_id, "gateway-1")
        assert found == ([0, 1, 2] if order == "none" else [0])
    with running_node(tmp_path) as running:
        last = found[-1]
        assert settle_as(running, topic_id, "gateway-1", last) == Error.NONE
        assert settle_as(running, topic_id, "gateway-1", 3) == Error.INVALID_RECORD_STATE, "not published yet"
        assert acquire_as(running, topic_id, "gateway-2") == ([0, 1] if order == "none" else [1])
        assert settle_as(running, topic_id, "gateway-1", 1) == Error.INVALID_RECORD_STATE, "it has an owner"
    with running_node(tmp_path) as running:
        running.publish("jobs", b"d")
        expected = [0, 1, 3] if order == "none" else [1]
        assert acquire_as(running, topic_id, "gateway-3") == expected


def test_owners_accept_counts_though_its_lock_has_ended_and_its_release_does_not(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate()
    topic_id = running.create("jobs")
    configure(running, share_record_lock_duration_ms=60_000, postroad_backoff_initial_ms=600_000)
    running.publish("jobs", b"a", b"b")
    assert acquire_as(running, topic_id, "gateway-1") == [0, 1]
    queue = running.node.subscriptions.queue_in_use(Key(GROUP, topic_id, 0))
    assert queue is not None
    running.run_for(61)
    assert queue.core.delayed == 2, "its locks have ended"
    assert settle_as(running, topic_id, "gateway-1", 1, Fate.RELEASE) == Error.INVALID_RECORD_STATE
    assert settle_as(running, topic_id, "gateway-1", 0) == Error.NONE
    assert running.node.subscriptions.ledgers(GROUP)[0].start == 1


def acquire_as(running: Running, topic_id: bytes, owner: str, **times: int) -> list[int]:
    """What the first fetch in the owner's name that brings anything brings."""
    return until(lambda: _acquire_as(running, topic_id, owner, **times), "messages")


def _acquire_as(running: Running, topic_id: bytes, owner: str, **times: int) -> list[int]:
    with running.session(GROUP, "jobs") as member:
        topics = [share_fetch.FetchTopic(topic_id, [share_fetch.FetchPartition(0, [])])]
        request = share_fetch.ShareFetchRequest(
            GROUP, member.member_id, 0, 1000, 1, 1 << 20, 9, 9, topics=topics
        )
        answer = member.connection.call(Owned(share_fetch, owner, **times), 1, request)  # type: ignore[arg-type]
        runs = [run for topic in answer.responses for run in topic.partitions[0].acquired_records]
        return [offset for run in runs for offset in range(run.first_offset, run.last_offset + 1)]


def settle_as(
    running: Running, topic_id: bytes, owner: str, offset: int, fate: Fate = Fate.ACCEPT, **tags: Any
) -> int:
    batch = share_acknowledge.AcknowledgementBatch(offset, offset, [fate])
    part = share_acknowledge.AcknowledgePartition(0, [batch])
    topics = [share_acknowledge.AcknowledgeTopic(topic_id, [part])]
    asked = share_acknowledge.ShareAcknowledgeRequest(GROUP, "whoever", 7, topics=topics)
    answer = running.call(Owned(share_acknowledge, owner, **tags), 1, asked)  # type: ignore[arg-type]
    return int(answer.error_code or answer.responses[0].partitions[0].error_code)
