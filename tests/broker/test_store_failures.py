"""A coordination store that fails is an answer that clients retry, and messages go on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Compare, Events, Operation, Snapshot, Store, StoreEntry
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
        running.run(running.node.registration.renew(running.node.image))
    assert list(running.node.image.nodes) == [running.node.settings.node.id]


# --- a commit whose outcome is not known


class LosingAnswers:
    """The Store port on a real store: answers of commits are lost, before or after they took effect."""

    def __init__(self, store: Store, *outcomes: bool) -> None:
        self._store = store
        self._outcomes = list(outcomes)  # of each commit whose answer is lost: whether it happened

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        if not self._outcomes:
            return await self._store.commit(compares, operations)
        if self._outcomes.pop(0):
            await self._store.commit(compares, operations)
        raise StoreUnavailable("The answer is lost.")

    async def get(self, key: str) -> StoreEntry | None:
        return await self._store.get(key)

    async def list(self, prefix: str) -> Snapshot:
        return await self._store.list(prefix)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        return self._store.watch(prefix, after)

    async def grant(self, ttl_ms: int) -> int:
        return await self._store.grant(ttl_ms)

    async def keep_alive(self, lease: int) -> None:
        await self._store.keep_alive(lease)

    async def revoke(self, lease: int) -> None:
        await self._store.revoke(lease)

    async def close(self) -> None:
        await self._store.close()


@pytest.fixture
def lose(shared: Running, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`lose(True, False)`: the answers of the next two commits are lost; the first takes effect."""

    def replace(*outcomes: bool) -> None:
        monkeypatch.setattr(shared.node.topics, "_store", LosingAnswers(shared.node.store, *outcomes))

    return replace


OUTCOMES = [(True,), (False,), (False, False, True)]


@pytest.mark.parametrize("outcomes", OUTCOMES)
def test_a_topic_is_created_and_deleted_once_whatever_became_of_the_answers(
    shared: Running, topic: str, lose: Callable[..., None], outcomes: Sequence[bool]
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


@pytest.mark.parametrize("outcomes", OUTCOMES)
def test_a_config_is_altered_whatever_became_of_the_answers(
    shared: Running, topic: str, lose: Callable[..., None], outcomes: Sequence[bool]
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
    topics._store = LosingAnswers(running.node.store, True, False, True)
    request = init_producer_id.InitProducerIdRequest(None, 1000)
    ids = [running.call(init_producer_id, 4, request).producer_id for _ in range(3)]
    assert len(set(ids)) == 3
    assert min(ids) >= 2000  # blocks whose fate was unknown are never used
    assert max(ids) < running.node.image.next_producer_id


def test_a_lost_lease_is_replaced_once_the_store_answers_again(start: Callable[..., Running]) -> None:
    running = start()
    node, registration = running.node, running.node.registration
    running.run(node.store.revoke(registration._lease))
    until(lambda: not node.image.nodes, "its entry is gone")
    node.topics._store = LosingAnswers(node.store, False)
    running.run(registration.renew(node.image))
    assert not node.image.nodes
    running.run(registration.renew(node.image))
    until(lambda: list(node.image.nodes) == [node.settings.node.id], "it is registered anew")
    running.run(registration.renew(node.image))  # and the new lease is kept alive
