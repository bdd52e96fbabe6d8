"""OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from postroad.wire.messages import offset_commit, offset_delete, offset_fetch
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import frame, request_content

UNKNOWN_TOPIC, TOO_LONG, ILLEGAL_GENERATION, INVALID_GROUP, UNKNOWN_MEMBER = 3, 12, 22, 24, 25
NOT_FOUND, UNKNOWN_ID, LOADING = 69, 100, 14
NOTHING = -1


def commit_request(group: str, topic: str | bytes, *places: tuple[int, int], metadata: str = "") -> Any:
    """`places` are (partition, offset); the topic is a name, or from version 10 on an id."""
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    partitions = [
        offset_commit.OffsetCommitRequestPartition(index, offset, 3, metadata) for index, offset in places
    ]
    topics = [offset_commit.OffsetCommitRequestTopic(**named, partitions=partitions)]
    return offset_commit.OffsetCommitRequest(group, -1, "", -1, None, topics)


def commit(running: Running, version: int, *given: Any, **more: Any) -> list[int]:
    answer = running.call(offset_commit, version, commit_request(*given, **more))
    return [partition.error_code for partition in answer.topics[0].partitions]


def committed(running: Running, group: str, topic: str, *indexes: int) -> list[int]:
    asked = offset_fetch.OffsetFetchRequestTopic(topic, list(indexes))
    answer = running.call(offset_fetch, 5, offset_fetch.OffsetFetchRequest(group, topics=[asked]))
    assert answer.error_code == 0
    return [p.committed_offset for t in answer.topics for p in t.partitions]


@pytest.mark.parametrize("version", range(offset_commit.MIN_VERSION, offset_commit.MAX_VERSION + 1))
def test_every_version_commits_what_exists_and_tells_what_does_not(shared: Running, version: int) -> None:
    name, group = f"commits-{version}", f"committer-{version}"
    topic_id = shared.create(name, 2)
    key = topic_id if version >= 10 else name
    assert commit(shared, version, group, key, (0, 5), (1, 7), (2, 9)) == [0, 0, UNKNOWN_TOPIC]
    assert committed(shared, group, name, 0, 1, 2) == [5, 7, NOTHING]
    unknown = b"\5" * 16 if version >= 10 else "nowhere"
    code = UNKNOWN_ID if version >= 10 else UNKNOWN_TOPIC
    assert commit(shared, version, group, unknown, (0, 5)) == [code]


def test_a_commit_answers_each_topic_under_the_key_it_was_asked_by(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    answer = shared.call(offset_commit, 10, commit_request("keys", topic_id, (0, 1)))
    assert (answer.topics[0].topic_id, answer.topics[0].name) == (topic_id, "")
    answer = shared.call(offset_commit, 9, commit_request("keys", topic, (0, 1)))
    assert answer.topics[0].name == topic


def test_a_commit_that_is_too_long_or_from_nobody_is_refused(shared: Running, topic: str) -> None:
    shared.create(topic)
    assert commit(shared, 9, "refused", topic, (0, 1), metadata="x" * 5000) == [TOO_LONG]
    request = commit_request("refused", topic, (0, 1))
    request.generation_id_or_member_epoch, request.member_id = 4, "stranger"
    answer = shared.call(offset_commit, 9, request)
    assert answer.topics[0].partitions[0].error_code == ILLEGAL_GENERATION
    assert commit(shared, 9, "", topic, (0, 1)) == [INVALID_GROUP]
    assert committed(shared, "refused", topic, 0) == [NOTHING]


def test_commits_of_a_partition_that_is_offline_are_taken(shared: Running, topic: str) -> None:
    from postroad.errors import StorageFailed

    topic_id = shared.create(topic)
    partition = shared.partition(topic)
    partitions = shared.node.partitions
    shared.on_loop(lambda: partitions.fail(topic, topic_id, 0, StorageFailed("for a while")))
    try:
        assert commit(shared, 9, "patient", topic, (0, 8)) == [0]
        assert committed(shared, "patient", topic, 0) == [8]
    finally:
        shared.on_loop(lambda: partitions.show(partition))


def test_commits_in_a_row_are_answered_in_order_and_the_last_one_counts(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        for n in range(200):
            connection.send(frame(request_content(offset_commit, 9, commit_request("row", topic, (0, n)), n)))
        for n in range(200):
            assert int.from_bytes(connection.receive()[:4], "big") == n
    assert committed(shared, "row", topic, 0) == [199]


def test_an_acknowledged_commit_survives_a_restart(start: Callable[..., Running]) -> None:
    running = start(groups_offsets_partitions=5)
    running.create("t")
    for n in range(40):
        assert commit(running, 9, f"group-{n}", "t", (0, n)) == [0]
    for _ in range(2):
        running.stop()
        running.start()
        assert [committed(running, f"group-{n}", "t", 0) for n in range(40)] == [[n] for n in range(40)]


# --- reading them


@pytest.mark.parametrize("version", range(offset_fetch.MIN_VERSION, 8))
def test_old_versions_fetch_one_group(shared: Running, version: int) -> None:
    name, group = f"read-{version}", f"reader-{version}"
    shared.create(name, 2)
    commit(shared, 9, group, name, (0, 5), metadata="note")
    asked = offset_fetch.OffsetFetchRequestTopic(name, [0, 1, 9])
    answer = shared.call(offset_fetch, version, offset_fetch.OffsetFetchRequest(group, topics=[asked]))
    found = [
        (p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in answer.topics[0].partitions
    ]
    assert found == [(0, 5, "note", 0), (1, NOTHING, "", 0), (9, NOTHING, "", 0)]
    if version >= 2:
        everything = shared.call(offset_fetch, version, offset_fetch.OffsetFetchRequest(group, topics=None))
        assert [(t.name, [p.partition_index for p in t.partitions]) for t in everything.topics] == [
            (name, [0])
        ]
    if version >= 5:
        assert answer.topics[0].partitions[0].committed_leader_epoch == (3 if version >= 5 else -1)


@pytest.mark.parametrize("version", range(offset_fetch.MIN_VERSION, 8))
def test_an_error_of_the_group_is_told_for_each_partition(
    start: Callable[..., Running], version: int
) -> None:
    running = start()
    asked = offset_fetch.OffsetFetchRequestTopic("t", [0, 1])
    commit(running, 9, "readers", "t", (0, 5))
    running.node.groups.find("readers").loaded = False
    answer = running.call(offset_fetch, version, offset_fetch.OffsetFetchRequest("readers", topics=[asked]))
    told = [(p.partition_index, p.committed_offset, p.error_code) for p in answer.topics[0].partitions]
    assert told == [(0, NOTHING, LOADING), (1, NOTHING, LOADING)]
    assert answer.error_code == (LOADING if version >= 2 else 0)


async def test_aiokafka_does_not_take_a_group_that_is_being_loaded_for_a_new_one(
    start: Callable[..., Running],
) -> None:
    """It looks at the errors of partitions only, and would begin anew where it has read for months."""
    running = start()
    running.create("t")
    commit(running, 9, "readers", "t", (0, 5))
    coordinator, where = running.node.groups.find("readers"), TopicPartition("t", 0)
    async with AIOKafkaConsumer(bootstrap_servers=running.bootstrap, group_id="readers") as consumer:
        consumer.assign([where])
        coordinator.loaded = False
        found = asyncio.create_task(consumer.committed(where))
        await asyncio.wait([found], timeout=0.5)  # as long as it believes nothing wrong
        coordinator.loaded = True
        assert await found == 5


def group_wanted(group: str, topic: str | bytes | None, *indexes: int, **more: Any) -> Any:
    if topic is None:
        return offset_fetch.OffsetFetchRequestGroup(group, topics=None, **more)
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    topics = [offset_fetch.OffsetFetchRequestTopics(**named, partition_indexes=list(indexes))]
    return offset_fetch.OffsetFetchRequestGroup(group, topics=topics, **more)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_new_versions_fetch_several_groups(shared: Running, version: int) -> None:
    name, group = f"read-{version}", f"reader-{version}"
    topic_id = shared.create(name)
    commit(shared, 9, group, name, (0, 5))
    key = topic_id if version >= 10 else name
    wanted = [
        group_wanted(group, key, 0),
        group_wanted("never-was", key, 0),
        group_wanted("", key, 0),
        group_wanted(group, None),
    ]
    answer = shared.call(offset_fetch, version, offset_fetch.OffsetFetchRequest(groups=wanted))
    here, unknown, nameless, everything = answer.groups
    for found in (here, everything):
        [topic] = found.topics
        assert (topic.topic_id, topic.name) == ((topic_id, "") if version >= 10 else (b"\0" * 16, name))
        assert topic.partitions[0].committed_offset == 5
    assert (unknown.error_code, unknown.topics[0].partitions[0].committed_offset) == (0, NOTHING)
    assert nameless.error_code == INVALID_GROUP


def test_an_unknown_group_has_nothing_and_that_is_no_error(shared: Running, topic: str) -> None:
    shared.create(topic)
    assert committed(shared, "never-was", topic, 0) == [NOTHING]


def test_an_unknown_topic_id_is_answered_by_itself(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    commit(shared, 9, "by-id", topic, (0, 5))
    wanted = group_wanted("by-id", topic_id, 0)
    wanted.topics.append(offset_fetch.OffsetFetchRequestTopics(topic_id=b"\6" * 16, partition_indexes=[0]))
    [group] = shared.call(offset_fetch, 10, offset_fetch.OffsetFetchRequest(groups=[wanted])).groups
    found = {t.topic_id: (t.partitions[0].committed_offset, t.partitions[0].error_code) for t in group.topics}
    assert found == {topic_id: (5, 0), b"\6" * 16: (NOTHING, UNKNOWN_ID)}


def test_a_stranger_who_claims_to_be_a_member_is_refused(shared: Running, topic: str) -> None:
    shared.create(topic)
    wanted = group_wanted("claimed", topic, 0, member_id="stranger", member_epoch=3)
    [group] = shared.call(offset_fetch, 9, offset_fetch.OffsetFetchRequest(groups=[wanted])).groups
    assert group.error_code == UNKNOWN_MEMBER


# --- deleting them


def delete(running: Running, group: str, *places: tuple[str, int]) -> Any:
    topics = [
        offset_delete.OffsetDeleteRequestTopic(name, [offset_delete.OffsetDeleteRequestPartition(index)])
        for name, index in places
    ]
    return running.call(offset_delete, 0, offset_delete.OffsetDeleteRequest(group, topics))


def test_offsets_are_deleted_and_what_does_not_exist_is_told(shared: Running, topic: str) -> None:
    shared.create(topic, 2)
    commit(shared, 9, "cleaned", topic, (0, 5), (1, 6))
    answer = delete(shared, "cleaned", (topic, 0), (topic, 7), ("nowhere", 0))
    codes = [t.partitions[0].error_code for t in answer.topics]
    assert (answer.error_code, codes) == (0, [0, UNKNOWN_TOPIC, UNKNOWN_TOPIC])
    assert committed(shared, "cleaned", topic, 0, 1) == [NOTHING, 6]
    assert delete(shared, "never-was", (topic, 0)).error_code == NOT_FOUND
    assert delete(shared, "", (topic, 0)).error_code == INVALID_GROUP


def test_a_deleted_topics_offsets_go_with_it(shared: Running, topic: str) -> None:
    shared.create(topic)
    commit(shared, 9, "left-behind", topic, (0, 5))
    assert shared.delete(topic) == 0
    until(lambda: committed(shared, "left-behind", topic, 0) == [NOTHING], "the offset goes")
    shared.create(topic)
    assert committed(shared, "left-behind", topic, 0) == [NOTHING]
