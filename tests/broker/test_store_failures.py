"""A coordination store that fails is an answer that clients retry, and messages go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from postroad.broker import topics
from postroad.broker.runtime import SystemRuntime
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import NO_LEASE, Compare, Events, Operation, Put, Snapshot, Store
from postroad.errors import StoreUnavailable
from postroad.wire import receipt_key
from postroad.wire.messages import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
    init_producer_id,
    metadata,
)
from tests.broker.harness import Running
from tests.broker.store_behind import StoreBehind
from tests.clients.wait import until
from tests.faults.raw import batch_of, send_batch

LEADER_NOT_AVAILABLE, TIMED_OUT, LOADING = 5, 7, 14
TOPIC, GROUP = 2, 32


def break_store(running: Running) -> None:
    """As if its file system had been made read-only: the next write fails, and the store with it."""
    store = running.node.store
    assert isinstance(store, SqliteStore)

    def refuse_writes() -> None:
        store._connection.execute("PRAGMA query_only = 1")

    running.run(store._run(refuse_writes))


@pytest.fixture
def broken(start: Callable[..., Running], caplog: pytest.LogCaptureFixture) -> Iterator[Running]:
    """A node with the topic `known` whose store fails; nothing that it does may end in a traceback."""
    running = start()
    running.create("known")
    break_store(running)
    yield running
    assert not [record for record in caplog.records if record.exc_info]
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) <= 1


def test_known_topics_are_answered_beside_unknown_ones_and_take_messages(broken: Running) -> None:
    names = ["new-1", "known", "new-2"]
    request = metadata.MetadataRequest(
        [metadata.MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )
    with broken.connect() as connection:
        for turn in range(5):
            answer = connection.call(metadata, 12, request)
            codes = {topic.name: topic.error_code for topic in answer.topics}
            assert codes == {"new-1": LEADER_NOT_AVAILABLE, "known": 0, "new-2": LEADER_NOT_AVAILABLE}
            assert send_batch(connection, "known", batch_of(b"x")).base_offset == turn


def test_librdkafka_delivers_to_known_topics_while_it_asks_for_unknown_ones(broken: Running) -> None:
    producer = Producer({"bootstrap.servers": broken.bootstrap, "message.timeout.ms": 2000, "linger.ms": 0})
    delivered: list[str] = []

    def on_delivery(error: object, message: Message) -> None:
        if error is None:
            delivered.append(message.topic() or "")

    for n in range(200):
        for name in ("known", f"new-{n % 10}"):
            producer.produce(name, b"x", on_delivery=on_delivery)
        producer.poll(0)
    producer.flush(20)
    assert delivered == ["known"] * 200


def test_every_change_is_answered_with_a_code_that_clients_retry(broken: Running) -> None:
    with broken.connect() as connection:  # which stays open all the time

        def code(api: Any, version: int, request: Any, field: str) -> int:
            [result] = getattr(connection.call(api, version, request), field)
            return int(result.error_code)

        create = create_topics.CreateTopicsRequest([create_topics.CreatableTopic("new", 1, 1)])
        assert code(create_topics, 7, create, "topics") == TIMED_OUT
        delete = delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState("known")])
        assert code(delete_topics, 6, delete, "responses") == TIMED_OUT
        more = create_partitions.CreatePartitionsRequest(
            [create_partitions.CreatePartitionsTopic("known", 3)]
        )
        assert code(create_partitions, 3, more, "results") == TIMED_OUT
        for kind, name, config in ((TOPIC, "known", "retention.ms"), (GROUP, "g", "postroad.backoff.max.ms")):
            old = alter_configs.AlterConfigsResource(
                kind, name, [alter_configs.AlterableConfig(config, "60000")]
            )
            assert code(alter_configs, 2, alter_configs.AlterConfigsRequest([old]), "responses") == TIMED_OUT
            new = incremental_alter_configs.AlterConfigsResource(
                kind, name, [incremental_alter_configs.AlterableConfig(config, 0, "60000")]
            )
            alter = incremental_alter_configs.IncrementalAlterConfigsRequest([new])
            assert code(incremental_alter_configs, 1, alter, "responses") == TIMED_OUT
        asked = init_producer_id.InitProducerIdRequest(None, 1000)
        assert connection.call(init_producer_id, 4, asked).error_code == LOADING
        assert send_batch(connection, "known", batch_of(b"x")).error_code == 0
    assert broken.node.image.topics["known"].config == {}


def test_the_receipt_key_can_be_asked_for_again(broken: Running) -> None:
    with broken.connect() as connection:
        answer = connection.call(receipt_key, receipt_key.MAX_VERSION, receipt_key.ReceiptKeyRequest())
        assert answer.error_code == TIMED_OUT


def test_a_failing_store_does_not_end_the_renewal_of_the_lease(broken: Running) -> None:
    running = broken
    assert running.call(init_producer_id, 4, init_producer_id.InitProducerIdRequest(None, 1000)).error_code
    for _ in range(3):
        running.run(running.node.registration.renew())
    assert running.node.registration.failed_renewals >= 3
    assert list(running.node.image.nodes) == [running.node.settings.node.id]


# --- a store that does not answer


class Silent(StoreBehind):
    """Nobody is answered; `asked` counts the requests that were waited for in vain."""

    asked = 0

    async def list(self, prefix: str) -> Snapshot:
        self.asked += 1
        raise StoreUnavailable()

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        self.asked += 1
        raise StoreUnavailable()


def test_a_request_with_many_changes_waits_for_a_silent_store_once(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "AWAY_S", 60.0)
    running = start()
    silent = running.node.topics._store = Silent(running.node.store)
    names = [f"new-{n}" for n in range(50)]
    create = create_topics.CreateTopicsRequest([create_topics.CreatableTopic(name, 1, 1) for name in names])
    answer = running.call(create_topics, 7, create)
    assert [topic.error_code for topic in answer.topics] == [TIMED_OUT] * 50
    assert silent.asked == 2  # a commit, and a look at what became of it
    wanted = [metadata.MetadataRequestTopic(name=name) for name in names]
    known = running.call(metadata, 12, metadata.MetadataRequest(wanted, allow_auto_topic_creation=True))
    assert [topic.error_code for topic in known.topics] == [LEADER_NOT_AVAILABLE] * 50
    assert silent.asked == 2


class Stuck(StoreBehind):
    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        await asyncio.Event().wait()
        return None


def test_a_change_is_answered_in_time_by_a_store_that_hangs(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "DECISION_TIMEOUT_S", 0.05)
    running = start()
    running.node.topics._store = Stuck(running.node.store)
    create = create_topics.CreateTopicsRequest([create_topics.CreatableTopic("new", 1, 1)])
    assert running.call(create_topics, 7, create).topics[0].error_code == TIMED_OUT
    wanted = metadata.MetadataRequest([metadata.MetadataRequestTopic(name="new")], True)
    assert running.call(metadata, 12, wanted).topics[0].error_code == LEADER_NOT_AVAILABLE
    asked = init_producer_id.InitProducerIdRequest(None, 1000)
    assert running.call(init_producer_id, 4, asked).error_code == LOADING


class CutOff(StoreBehind):
    """While `away`, requests and watches fail; watches that wait are cut off with the next change."""

    away = False

    def check(self) -> None:
        if self.away:
            raise StoreUnavailable()

    async def list(self, prefix: str) -> Snapshot:
        self.check()
        return await self.store.list(prefix)

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        self.check()
        async for events in self.store.watch(prefix, after):
            self.check()
            yield events

    async def keep_alive(self, lease: int) -> None:
        self.check()
        await self.store.keep_alive(lease)


def test_a_node_that_is_cut_off_serves_on_says_so_once_and_follows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topics, "FOLLOW_RETRY_S", 0.01)

    class Cluster(SystemRuntime):
        async def open_store(self, path: Path, address: str) -> Store:
            return CutOff(await super().open_store(path, address))

    running = Running(tmp_path)
    running.runtime = Cluster
    running.start()
    store = running.node.store
    assert isinstance(store, CutOff)
    running.create("known")
    store.away = True
    running.run(store.store.commit([], [Put("cut", b"the watch")]))
    until(lambda: "can't be followed" in caplog.text, "the watch is cut off")
    for turn in range(20):
        running.run(running.node.registration.renew())
        assert running.publish("known", b"x") == turn
        assert running.fetch("known", turn).high_watermark == turn + 1
    store.away = False
    running.create("new")
    running.run(running.node.registration.renew())
    assert running.publish("new", b"x") == 0
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert sorted(text.split("; still trying")[0] for text in warnings) == [
        "the coordination store can't be followed",
        "the node's entry in the coordination store can't be renewed",
    ]
    assert not running.node.failed.is_set()
    running.stop()


# --- a commit whose outcome is not known


class Outcome(Enum):
    """What becomes of a commit whose answer is lost."""

    HAPPENED = "it took effect"
    LOST = "its request was lost, too"
    LATE = "its request arrives just before the next one"


HAPPENED, LOST, LATE = Outcome


class LosingAnswers(StoreBehind):
    """Answers of commits are lost, and with them the knowledge what became of the commits."""

    def __init__(self, store: Store, *outcomes: Outcome) -> None:
        super().__init__(store)
        self._outcomes = list(outcomes)
        self._late: list[tuple[Sequence[Compare], Sequence[Operation]]] = []

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        while self._late:
            await self.store.commit(*self._late.pop())
        if not self._outcomes:
            return await self.store.commit(compares, operations)
        outcome = self._outcomes.pop(0)
        if outcome is HAPPENED:
            await self.store.commit(compares, operations)
        elif outcome is LATE:
            self._late.append((compares, operations))
        raise StoreUnavailable("The answer is lost.")


class VeryLate(StoreBehind):
    """The first commit gets no answer and arrives when the test says so."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._late: tuple[Sequence[Compare], Sequence[Operation]] | None = None

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        if self._late is not None:
            return await self.store.commit(compares, operations)
        self._late = (compares, operations)
        raise StoreUnavailable("The answer is lost.")

    async def arrive(self) -> int | None:
        assert self._late is not None
        return await self.store.commit(*self._late)


@pytest.fixture
def lose(shared: Running, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`lose(HAPPENED, LOST)`: the answers of the next two commits are lost; the first takes effect."""

    def replace(*outcomes: Outcome) -> None:
        monkeypatch.setattr(shared.node.topics, "_store", LosingAnswers(shared.node.store, *outcomes))

    return replace


OUTCOMES = [(HAPPENED,), (LOST,), (LOST, LOST, HAPPENED), (LATE,), (LATE, LATE)]


@pytest.mark.parametrize("outcomes", OUTCOMES)
def test_a_topic_is_created_and_deleted_once_whatever_became_of_the_answers(
    shared: Running, topic: str, lose: Callable[..., None], outcomes: Sequence[Outcome]
) -> None:
    lose(*outcomes)
    shared.create(topic)
    assert shared.publish(topic, b"x") == 0
    lose(*outcomes)
    more = create_partitions.CreatePartitionsRequest([create_partitions.CreatePartitionsTopic(topic, 3)])
    assert shared.call(create_partitions, 3, more).results[0].error_code == 0
    assert shared.publish(topic, b"x", partition=2) == 0
    lose(*outcomes)
    assert shared.delete(topic) == 0
    assert topic not in shared.node.image.topics


def test_a_creation_that_arrives_after_its_topic_was_deleted_does_not_bring_it_back(
    start: Callable[..., Running],
) -> None:
    running = start()
    store = VeryLate(running.node.store)
    running.node.topics._store = store
    running.create("gone")
    assert running.delete("gone") == 0
    until(lambda: not running.node.image.deleted, "its directories are gone")
    assert running.run(store.arrive()) is None
    assert "gone" not in running.node.image.topics


@pytest.mark.parametrize("outcomes", OUTCOMES)
def test_a_config_is_altered_whatever_became_of_the_answers(
    shared: Running, topic: str, lose: Callable[..., None], outcomes: Sequence[Outcome]
) -> None:
    shared.create(topic)
    lose(*outcomes)
    change = incremental_alter_configs.AlterableConfig("retention.ms", 0, "60000")
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC, topic, [change])
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    assert shared.call(incremental_alter_configs, 1, request).responses[0].error_code == 0
    assert shared.node.image.topics[topic].config == {"retention.ms": "60000"}


def test_no_producer_id_is_given_twice_when_answers_are_lost(start: Callable[..., Running]) -> None:
    running = start()
    topics = running.node.topics
    topics._store = LosingAnswers(running.node.store, HAPPENED, LATE, HAPPENED)
    request = init_producer_id.InitProducerIdRequest(None, 1000)
    ids = [running.call(init_producer_id, 4, request).producer_id for _ in range(3)]
    assert len(set(ids)) == 3
    assert min(ids) >= 1000  # a block whose fate was unknown is never used
    assert max(ids) < running.node.image.next_producer_id


def test_a_lost_lease_is_replaced_once_the_store_answers_again(start: Callable[..., Running]) -> None:
    running = start()
    node, registration = running.node, running.node.registration
    lost = registration.lease
    node.topics._store = LosingAnswers(node.store, LOST)
    running.run(node.store.revoke(lost))
    until(lambda: registration.lease not in (NO_LEASE, lost), "it is registered anew, at the second attempt")
    until(lambda: list(node.image.nodes) == [node.settings.node.id], "all can see it")
    running.run(registration.renew())  # and the new lease is kept alive
