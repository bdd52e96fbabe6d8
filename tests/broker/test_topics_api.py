"""CreateTopics, DeleteTopics, CreatePartitions, DescribeTopicPartitions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from postroad.wire.messages import create_partitions, create_topics, delete_topics
from postroad.wire.messages import describe_topic_partitions as describe
from postroad.wire.primitives import ZERO_UUID
from tests.broker.harness import Running
from tests.clients.wait import until

UNKNOWN_TOPIC, INVALID_TOPIC, EXISTS, BAD_PARTITIONS, BAD_REPLICAS, BAD_ASSIGNMENT = 3, 17, 36, 37, 38, 39
BAD_CONFIG, INVALID_REQUEST, POLICY, DELETION_DISABLED, UNKNOWN_ID = 40, 42, 44, 73, 100


def creatable(name: str, partitions: int = 1, replicas: int = 1, **config: str) -> Any:
    configs = [create_topics.CreatableTopicConfig(k.replace("_", "."), v) for k, v in config.items()]
    return create_topics.CreatableTopic(name, partitions, replicas, configs=configs)


def create(running: Running, *topics: Any, version: int = 7, validate_only: bool = False) -> list[Any]:
    request = create_topics.CreateTopicsRequest(list(topics), 10_000, validate_only)
    return list(running.call(create_topics, version, request).topics)


@pytest.mark.parametrize("version", range(create_topics.MIN_VERSION, create_topics.MAX_VERSION + 1))
def test_every_version_creates_a_topic_that_can_be_used_at_once(shared: Running, version: int) -> None:
    name = f"created-{version}"
    [made] = create(shared, creatable(name, 2, retention_ms="60000"), version=version)
    assert (made.error_code, made.name) == (0, name)
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (2, 1)
        assert {c.name: c.value for c in made.configs}["retention.ms"] == "60000"
    if version >= 7:
        assert made.topic_id == shared.node.image.topics[name].id
    shared.publish(name, b"x", partition=1)


def test_defaults_come_from_the_node(start: Callable[..., Running]) -> None:
    running = start(topics_partitions=3)
    [made] = create(running, creatable("t", -1, -1))
    assert (made.error_code, made.num_partitions) == (0, 3)


def test_validate_only_answers_as_if_and_creates_nothing(shared: Running, topic: str) -> None:
    [would] = create(shared, creatable(topic, 4), validate_only=True)
    assert (would.error_code, would.num_partitions) == (0, 4)
    assert topic not in shared.node.image.topics
    [refused] = create(shared, creatable(topic, 0), validate_only=True)
    assert refused.error_code == BAD_PARTITIONS


def assigned(name: str, *replicas: list[int], partitions: int = -1) -> Any:
    assignments = [create_topics.CreatableReplicaAssignment(n, r) for n, r in enumerate(replicas)]
    return create_topics.CreatableTopic(name, partitions, -1, assignments=assignments)


@pytest.mark.parametrize(
    ("topic_asked", "code"),
    [
        (creatable("refused", 0), BAD_PARTITIONS),
        (creatable("refused", -2), BAD_PARTITIONS),
        (creatable("refused", 10_001), BAD_PARTITIONS),
        (creatable("refused", 1, 2), BAD_REPLICAS),
        (creatable("refused", 1, 0), BAD_REPLICAS),
        (creatable("ref/used"), INVALID_TOPIC),
        (creatable(""), INVALID_TOPIC),
        (creatable("__transaction_state"), INVALID_TOPIC),
        (creatable("refused", no_such_config="1"), BAD_CONFIG),
        (creatable("refused", retention_ms="soon"), BAD_CONFIG),
        (assigned("refused", [1, 2]), BAD_ASSIGNMENT),
        (assigned("refused", [1], partitions=1), INVALID_REQUEST),
    ],
)
def test_a_wrong_wish_is_refused_with_its_reason(shared: Running, topic_asked: Any, code: int) -> None:
    [refused] = create(shared, topic_asked)
    assert (refused.error_code, bool(refused.error_message)) == (code, True)
    assert "refused" not in shared.node.image.topics


def test_a_replica_assignment_counts_the_partitions(shared: Running, topic: str) -> None:
    [made] = create(shared, assigned(topic, [1], [1], [1]))
    assert (made.error_code, made.num_partitions) == (0, 3)


def test_each_topic_of_a_request_is_judged_by_itself(shared: Running) -> None:
    create(shared, creatable("there-already"))
    results = create(
        shared, creatable("twice"), creatable("once"), creatable("twice"), creatable("there-already")
    )
    codes = [(r.name, r.error_code) for r in results]
    assert codes == [
        ("twice", INVALID_REQUEST),
        ("once", 0),
        ("twice", INVALID_REQUEST),
        ("there-already", EXISTS),
    ]
    assert "twice" not in shared.node.image.topics


def test_many_clients_that_create_at_once_get_all_their_topics(shared: Running) -> None:
    names = [f"crowd-{n}" for n in range(30)]
    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(lambda name: create(shared, creatable(name))[0].error_code, names))
    assert results == [0] * 30


def test_of_many_that_create_the_same_topic_one_succeeds(shared: Running, topic: str) -> None:
    with ThreadPoolExecutor(10) as pool:
        codes = list(pool.map(lambda _: create(shared, creatable(topic))[0].error_code, range(20)))
    assert sorted(codes) == [0] + [EXISTS] * 19


# --- deleting


def delete(running: Running, version: int, *names: str) -> list[Any]:
    states = [delete_topics.DeleteTopicState(name) for name in names]
    request = delete_topics.DeleteTopicsRequest(list(names), states, 10_000)
    return list(running.call(delete_topics, version, request).responses)


@pytest.mark.parametrize("version", range(delete_topics.MIN_VERSION, delete_topics.MAX_VERSION + 1))
def test_every_version_deletes_and_the_name_is_free_again(shared: Running, version: int) -> None:
    name = f"deleted-{version}"
    old = shared.create(name)
    shared.publish(name, b"old")
    results = delete(shared, version, name, "never-was")
    assert [(r.name, r.error_code) for r in results] == [(name, 0), ("never-was", UNKNOWN_TOPIC)]
    if version >= 6:
        assert results[0].topic_id == old
    assert shared.create(name) != old
    assert shared.fetch(name, 0).high_watermark == 0


def test_a_topic_is_deleted_by_its_id(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    states = [delete_topics.DeleteTopicState(None, wanted) for wanted in (topic_id, b"\3" * 16)]
    states.append(delete_topics.DeleteTopicState(None, ZERO_UUID))
    states.append(delete_topics.DeleteTopicState(topic, topic_id))
    request = delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=10_000)
    answered = shared.call(delete_topics, 6, request).responses
    assert [(r.name, r.error_code) for r in answered] == [
        (topic, 0),
        (None, UNKNOWN_ID),
        (None, INVALID_REQUEST),
        (topic, INVALID_REQUEST),
    ]


def test_the_files_of_a_deleted_topic_go_and_the_store_forgets_it(shared: Running, topic: str) -> None:
    shared.create(topic, 3)
    topic_id = shared.node.image.topics[topic].id_text
    directories = [shared.node.directory.logs / f"{topic_id}-{n}" for n in range(3)]
    assert all(directory.exists() for directory in directories)
    assert delete(shared, 6, topic)[0].error_code == 0
    until(lambda: not any(directory.exists() for directory in directories), "the directories go")
    until(lambda: not shared.node.image.deleted, "the note in the store goes")


def test_internal_topics_stay(shared: Running) -> None:
    assert delete(shared, 6, "__consumer_offsets")[0].error_code == POLICY


def test_deletion_can_be_turned_off(start: Callable[..., Running]) -> None:
    running = start(topics_deletable=False)
    running.create("kept")
    assert delete(running, 6, "kept")[0].error_code == DELETION_DISABLED
    running.publish("kept", b"x")


# --- growing


def grow(running: Running, version: int, name: str, count: int, **more: Any) -> int:
    topic = create_partitions.CreatePartitionsTopic(name, count, more.pop("assignments", None))
    request = create_partitions.CreatePartitionsRequest([topic], 10_000, **more)
    return int(running.call(create_partitions, version, request).results[0].error_code)


@pytest.mark.parametrize("version", range(create_partitions.MIN_VERSION, create_partitions.MAX_VERSION + 1))
def test_every_version_adds_partitions_that_can_be_used_at_once(shared: Running, version: int) -> None:
    name = f"grown-{version}"
    shared.create(name)
    shared.publish(name, b"kept")
    assert grow(shared, version, name, 3) == 0
    shared.publish(name, b"x", partition=2)
    assert shared.fetch(name, 0).high_watermark == 1


def test_growing_is_refused_where_it_is_not_growing(shared: Running, topic: str) -> None:
    shared.create(topic, 2)
    assert grow(shared, 3, topic, 2) == BAD_PARTITIONS
    assert grow(shared, 3, topic, 1) == BAD_PARTITIONS
    assert grow(shared, 3, topic, 10_001) == BAD_PARTITIONS
    assert grow(shared, 3, "nowhere", 2) == UNKNOWN_TOPIC
    assert grow(shared, 3, "__consumer_offsets", 9) == POLICY
    wrong = [create_partitions.CreatePartitionsAssignment([7])]
    assert grow(shared, 3, topic, 3, assignments=wrong) == BAD_ASSIGNMENT
    assert grow(shared, 3, topic, 4, validate_only=True) == 0
    assert len(shared.node.image.topics[topic].partitions) == 2


# --- describing page by page


def page(running: Running, names: list[str], limit: int, cursor: Any = None) -> Any:
    request = describe.DescribeTopicPartitionsRequest(
        [describe.TopicRequest(name) for name in names], limit, cursor
    )
    return running.call(describe, 0, request)


def test_replicas_that_could_lead_are_a_list_as_java_clients_expect(shared: Running) -> None:
    shared.create("eligible", 1)
    [topic] = page(shared, ["eligible"], 10).topics
    assert [(p.eligible_leader_replicas, p.last_known_elr) for p in topic.partitions] == [([], [])]


def test_pages_join_to_the_whole_without_overlap(shared: Running) -> None:
    shared.create("paged-a", 3)
    shared.create("paged-b", 1)
    shared.create("paged-c", 4)
    names, found, cursor = ["paged-c", "paged-a", "paged-b"], [], None
    for _ in range(10):
        answer = page(shared, names, 3, cursor)
        count = sum(len(topic.partitions) for topic in answer.topics)
        assert count <= 3
        found += [(t.name, p.partition_index) for t in answer.topics for p in t.partitions]
        if answer.next_cursor is None:
            break
        cursor = describe.RequestCursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert found == [
        *(("paged-a", n) for n in range(3)),
        ("paged-b", 0),
        *(("paged-c", n) for n in range(4)),
    ]


def test_unknown_and_illegal_topics_are_told_in_their_page(shared: Running) -> None:
    shared.create("paged-known")
    answer = page(shared, ["paged-known", "paged-unknown", "il/legal"], 100)
    assert {t.name: t.error_code for t in answer.topics} == {
        "paged-known": 0,
        "paged-unknown": UNKNOWN_TOPIC,
        "il/legal": INVALID_TOPIC,
    }


def test_without_names_all_topics_are_described(shared: Running) -> None:
    shared.create("paged-among-all")
    names = [topic.name for topic in page(shared, [], 2000).topics]
    assert "paged-among-all" in names
    assert names == sorted(names)


def test_a_cursor_below_zero_is_no_request(shared: Running) -> None:
    from tests.faults.raw import frame, request_content

    request = describe.DescribeTopicPartitionsRequest([], 10, describe.RequestCursor("a", -1))
    with shared.connect() as connection:
        connection.send(frame(request_content(describe, 0, request)))
        assert connection.is_closed_by_broker()
