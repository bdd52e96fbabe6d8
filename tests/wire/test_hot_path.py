"""The hand-written Produce and Fetch speak exactly as the generated codec does, in every version."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.errors import ProtocolError
from postroad.wire import fetch, framing, produce
from postroad.wire.leader_hints import CurrentLeader, NodeEndpoint
from postroad.wire.messages import fetch as generated_fetch
from postroad.wire.messages import produce as generated_produce


def answer_of(
    topic: str | bytes, index: int, error: int, base: int, time: int, start: int, message: str | None
) -> produce.PartitionAnswer:
    answer = produce.PartitionAnswer(topic, index)
    answer.error, answer.base_offset, answer.append_time_ms = error, base, time
    answer.start_offset, answer.message = start, message
    return answer


PRODUCE_VERSIONS = range(produce.MIN_VERSION, produce.MAX_VERSION + 1)
FETCH_VERSIONS = range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1)
NAMES = ["orders", "payments.eu", "t" * 249]
IDS = [bytes([n]) * 16 for n in range(3)]


def topics_of(version: int, ids_from: int) -> list[str] | list[bytes]:
    return IDS if version >= ids_from else NAMES


def named(topic: str | bytes) -> dict[str, object]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_requests_are_read_as_the_generated_codec_writes_them(version: int) -> None:
    topics = topics_of(version, produce.TOPIC_IDS_FROM)
    expected = [
        (topic, index, memoryview(b"batch" * (n + index)))
        for n, topic in enumerate(topics)
        for index in range(3)
    ]
    request = generated_produce.ProduceRequest(
        transactional_id="me" if version % 2 else None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            generated_produce.TopicProduceData(
                **named(topic),  # type: ignore[arg-type]
                partition_data=[
                    generated_produce.PartitionProduceData(index, records)
                    for name, index, records in expected
                    if name == topic
                ],
            )
            for topic in topics
        ],
    )
    body = generated_produce.encode_request(request, version)
    decoded = produce.decode(memoryview(body), version)
    assert decoded == (request.transactional_id, -1, 30_000, expected)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_responses_are_written_as_the_generated_codec_reads_them(version: int) -> None:
    topics = topics_of(version, produce.TOPIC_IDS_FROM)
    answers = [
        answer_of(topic, index, index, 100 + index, 5 - index, 7, None if index else "why")
        for topic in topics
        for index in range(3)
    ]
    response = generated_produce.decode_response(produce.encode(answers, version), version)
    read = [
        (
            topic.topic_id if version >= 13 else topic.name,
            p.index,
            p.error_code,
            p.base_offset,
            p.log_append_time_ms,
        )
        for topic in response.responses
        for p in topic.partition_responses
    ]
    assert read == [(a.topic, a.index, a.error, a.base_offset, a.append_time_ms) for a in answers]
    if version >= 8:
        assert response.responses[0].partition_responses[0].error_message == "why"
    assert generated_produce.encode_response(response, version) == produce.encode(answers, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("message", [None, "why", "w" * 300])
def test_single_produce_answers_are_written_as_the_generated_codec_writes_them(
    version: int, message: str | None
) -> None:
    topic = topics_of(version, produce.TOPIC_IDS_FROM)[-1]
    body = produce.encode([answer_of(topic, 3, 1, 2, 4, 5, message)], version)
    response = generated_produce.decode_response(body, version)
    assert generated_produce.encode_response(response, version) == body
    answered = response.responses[0].partition_responses[0]
    assert (answered.index, answered.error_code, answered.base_offset) == (3, 1, 2)


def one_partition(version: int, topic: str | bytes, index: int, acks: int, records: bytes) -> memoryview:
    partition = generated_produce.PartitionProduceData(index, records)
    data = generated_produce.TopicProduceData(**named(topic), partition_data=[partition])  # type: ignore[arg-type]
    request = generated_produce.ProduceRequest(acks=acks, timeout_ms=9, topic_data=[data])
    return memoryview(generated_produce.encode_request(request, version))


REPEATED_VERSIONS = [version for version in PRODUCE_VERSIONS if version >= 5]


def frame_of(body: memoryview | bytearray, version: int, key: int = 0) -> memoryview:
    return memoryview(struct.pack(">hhih", key, version, 77, 4) + b"kcat\0" + bytes(body))


def repetition_of(body: memoryview, version: int) -> produce.Repetition:
    request = produce.decode(body, version)
    assert produce.can_repeat(request, version)
    return produce.Repetition(request, frame_of(body, version), version, b"\0" if version >= 9 else b"")


def records_of(repetition: produce.Repetition, body: memoryview | bytearray) -> memoryview | None:
    read = repetition.read(frame_of(body, repetition.version))
    assert read is None or read[0] == 77
    return None if read is None else read[1]


@pytest.mark.parametrize("version", REPEATED_VERSIONS)
def test_a_repeated_request_gives_the_records_that_decoding_gives(version: int) -> None:
    topic, other = topics_of(version, produce.TOPIC_IDS_FROM)[:2]
    first = one_partition(version, topic, 4, -1, b"a" * 70)
    repetition = repetition_of(first, version)
    assert (repetition.topic, repetition.index, repetition.acks) == (topic, 4, -1)
    for size in (0, 1, 126, 127, 128, 16_382, 16_383, 20_000, 2_097_150, 2_097_151):
        again = one_partition(version, topic, 4, -1, b"b" * size)
        assert records_of(repetition, again) == produce.decode(again, version).partitions[0][2]
    for different in (
        one_partition(version, other, 4, -1, b"b"),
        one_partition(version, topic, 5, -1, b"b"),
        one_partition(version, topic, 4, 1, b"b"),
        memoryview(bytes(first) + b"x"),
        first[:-1],
        first[:10],
    ):
        assert records_of(repetition, different) is None
    assert repetition.read(frame_of(first, version)) is not None
    for version_or_key in ({"version": version + 1}, {"version": version, "key": 1}):
        assert repetition.read(frame_of(first, **version_or_key)) is None


@pytest.mark.parametrize("version", REPEATED_VERSIONS)
def test_mutants_of_a_repeated_request_are_never_read_differently(version: int) -> None:
    topic = topics_of(version, produce.TOPIC_IDS_FROM)[0]
    first = one_partition(version, topic, 4, -1, b"a" * 70)
    repetition = repetition_of(first, version)
    dice = random.Random(version)
    for _ in range(2000):
        mutant = bytearray(first)
        mutant[dice.randrange(len(mutant))] = dice.randrange(256)
        with contextlib.suppress(ProtocolError):
            records = records_of(repetition, mutant)
            if records is not None:
                assert records == produce.decode(memoryview(mutant), version).partitions[0][2]


@pytest.mark.parametrize("version", REPEATED_VERSIONS)
def test_the_response_to_a_repeated_request_is_the_one_that_encoding_gives(version: int) -> None:
    topic = topics_of(version, produce.TOPIC_IDS_FROM)[0]
    repetition = repetition_of(one_partition(version, topic, 4, -1, b"a" * 70), version)
    body = produce.encode([answer_of(topic, 4, 0, 1 << 40, 5, 3, None)], version)
    head = framing.response_head(len(body), 99, version >= produce.FLEXIBLE_FROM)
    assert repetition.response(99, 1 << 40, 5, 3) == head + body


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_requests_are_read_as_the_generated_codec_writes_them(version: int) -> None:
    topics = topics_of(version, fetch.TOPIC_IDS_FROM)
    named_topic = [("topic_id" if version >= 13 else "topic", topic) for topic in topics]
    request = generated_fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
        session_id=9,
        session_epoch=4,
        topics=[
            generated_fetch.FetchTopic(
                **{key: topic},  # type: ignore[arg-type]
                partitions=[
                    generated_fetch.FetchPartition(
                        partition=index,
                        current_leader_epoch=3,
                        fetch_offset=1 << 40,
                        last_fetched_epoch=2,
                        log_start_offset=1 << 35,
                        partition_max_bytes=77,
                    )
                    for index in range(2)
                ],
            )
            for key, topic in named_topic
        ],
        forgotten_topics_data=[
            generated_fetch.ForgottenTopic(**{key: topic}, partitions=[5, 6])  # type: ignore[arg-type]
            for key, topic in named_topic[:1]
        ],
        rack_id="r1",
    )
    decoded = fetch.decode(memoryview(generated_fetch.encode_request(request, version)), version)
    epoch = 3 if version >= 9 else -1
    last_epoch = 2 if version >= 12 else -1
    start = 1 << 35 if version >= 5 else -1
    assert decoded.partitions == [
        fetch.PartitionFetch(topic, index, epoch, 1 << 40, 77, last_epoch, start)
        for topic in topics
        for index in range(2)
    ]
    assert decoded.rack == ("r1" if version >= fetch.RACKS_FROM else "")
    assert decoded[:5] == (-1, 500, 1, 1 << 20, 1)
    if version >= fetch.SESSIONS_FROM:
        assert (decoded.session_id, decoded.session_epoch) == (9, 4)
        assert decoded.forgotten == [(topics[0], 5), (topics[0], 6)]


def one_fetch(version: int, topic: str | bytes, offset: int, max_bytes: int = 77) -> memoryview:
    partition = generated_fetch.FetchPartition(
        partition=3, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    key = "topic_id" if isinstance(topic, bytes) else "topic"
    wanted = generated_fetch.FetchTopic(**{key: topic}, partitions=[partition])  # type: ignore[arg-type]
    request = generated_fetch.FetchRequest(max_wait_ms=5, session_epoch=-1, topics=[wanted], rack_id="r")
    return memoryview(generated_fetch.encode_request(request, version))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_repeated_fetch_is_read_as_decoding_reads_it(version: int) -> None:
    topic, other = topics_of(version, fetch.TOPIC_IDS_FROM)[:2]
    first = one_fetch(version, topic, 5)
    repetition = fetch.Repetition(fetch.decode(first, version), first, version)
    for offset in (0, 6, 1 << 40, -1):
        again = one_fetch(version, topic, offset)
        assert repetition.offset_of(again, version) == offset
        assert repetition.request_from(offset) == fetch.decode(again, version)
    for different in (one_fetch(version, other, 5), one_fetch(version, topic, 5, 78), first[:-1], first[:20]):
        assert repetition.offset_of(different, version) is None
    assert repetition.offset_of(first, version + 1) is None


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_the_response_to_a_repeated_fetch_is_the_one_that_encoding_gives(version: int) -> None:
    topic = topics_of(version, fetch.TOPIC_IDS_FROM)[0]
    first = one_fetch(version, topic, 5)
    repetition = fetch.Repetition(fetch.decode(first, version), first, version)
    for records in (b"", b"x", b"y" * 200):
        answer = fetch.PartitionAnswer(topic, 3, 0, 100, 90, 5, records)
        assert [repetition.response(100, 90, 5, records)] == fetch.encode([answer], version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("several", [False, True])
def test_aborted_transactions_are_written_as_the_generated_codec_reads_them(
    version: int, several: bool
) -> None:
    topic = topics_of(version, fetch.TOPIC_IDS_FROM)[0]
    answer = fetch.PartitionAnswer(topic, 3, 0, 100, 90, 5, b"records", aborted=[(7, 10), (8, 12)])
    body = b"".join(fetch.encode([answer, answer] if several else [answer], version))  # type: ignore[arg-type]
    response = generated_fetch.decode_response(body, version)
    assert generated_fetch.encode_response(response, version) == body
    found = response.responses[0].partitions[0]
    assert [(a.producer_id, a.first_offset) for a in found.aborted_transactions or ()] == [(7, 10), (8, 12)]
    assert (found.last_stable_offset, bytes(found.records or b"")) == (90, b"records")


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("size", [None, 0, 5, 127, 300])
def test_single_fetch_answers_are_written_as_the_generated_codec_reads_them(
    version: int, size: int | None
) -> None:
    topic = topics_of(version, fetch.TOPIC_IDS_FROM)[0]
    data = None if size is None else b"x" * size
    for records in (data, None if data is None else FileSlice(data)):
        answer = fetch.PartitionAnswer(topic, 9, 3, 100, 99, 5, records)
        parts = fetch.encode([answer], version)
        body = joined(parts)
        response = generated_fetch.decode_response(body, version)
        (partition,) = response.responses[0].partitions
        assert (partition.partition_index, partition.error_code, partition.high_watermark) == (9, 3, 100)
        assert bytes(partition.records or b"") == (data or b"")
        assert generated_fetch.encode_response(response, version) == body


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_replica_says_who_it_is(version: int) -> None:
    tagged = version >= fetch.REPLICA_STATE_FROM
    state = generated_fetch.ReplicaState(replica_id=42, replica_epoch=1 << 40) if tagged else None
    request = generated_fetch.FetchRequest(
        cluster_id="c" if version >= 12 else None,
        replica_id=-1 if tagged else 42,
        replica_state=state,
        rack_id="x" if version >= fetch.RACKS_FROM else "",
    )
    decoded = fetch.decode(memoryview(generated_fetch.encode_request(request, version)), version)
    assert (decoded.replica_id, decoded.replica_epoch) == (42, 1 << 40 if tagged else -1)


@pytest.mark.parametrize("version", [11, 12, 17])
def test_a_rack_may_be_null(version: int) -> None:
    body = generated_fetch.encode_request(generated_fetch.FetchRequest(), version)
    null = body[:-2] + (b"\xff\xff" if version == 11 else b"\0\0")
    assert fetch.decode(memoryview(null), version).rack == ""


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("count", [1, 3])
def test_fetch_answers_tell_where_logs_part_and_who_leads(version: int, count: int) -> None:
    topic = topics_of(version, fetch.TOPIC_IDS_FROM)[0]
    hints = [
        (None, CurrentLeader(7, 9)),
        (fetch.EpochEnd(3, 1 << 40), None),
        (fetch.EpochEnd(3, 4), CurrentLeader(1, 2)),
    ]
    nodes = [NodeEndpoint(7, "a.example", 9092, "r1"), NodeEndpoint(1, "b", 9093)]
    answers = [
        fetch.PartitionAnswer(topic, index, 6, 100, 99, 5, b"xy", diverging, leader, 8)
        for index, (diverging, leader) in enumerate(hints[-count:])
    ]
    flexible = version >= fetch.FLEXIBLE_FROM
    expected = generated_fetch.FetchResponse(
        responses=[
            generated_fetch.FetchableTopicResponse(
                **{"topic_id" if version >= 13 else "topic": topic},  # type: ignore[arg-type]
                partitions=[
                    generated_fetch.PartitionData(
                        index,
                        6,
                        100,
                        99,
                        5 if version >= 5 else -1,
                        generated_fetch.EpochEndOffset(*diverging) if flexible and diverging else None,
                        generated_fetch.LeaderIdAndEpoch(*leader) if flexible and leader else None,
                        aborted_transactions=[],
                        preferred_read_replica=8 if version >= 11 else -1,
                        records=b"xy",
                    )
                    for index, (diverging, leader) in enumerate(hints[-count:])
                ],
            )
        ],
    )
    assert joined(fetch.encode(answers, version)) == generated_fetch.encode_response(expected, version)
    if version >= fetch.ENDPOINTS_FROM:
        expected.node_endpoints = [generated_fetch.NodeEndpoint(*node) for node in nodes]
    body = joined(fetch.encode(answers, version, endpoints=nodes))
    assert body == generated_fetch.encode_response(expected, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("count", [1, 2])
def test_produce_answers_tell_who_leads(version: int, count: int) -> None:
    topic = topics_of(version, produce.TOPIC_IDS_FROM)[0]
    answers = [answer_of(topic, index, 6, -1, -1, -1, None) for index in range(count)]
    answers[0].leader = CurrentLeader(7, 9)
    nodes = [NodeEndpoint(7, "a.example", 9092, "r1")]
    plain = [answer_of(topic, index, 6, -1, -1, -1, None) for index in range(count)]
    expected = generated_produce.decode_response(produce.encode(plain, version), version)
    if version >= produce.LEADER_HINTS_FROM:
        hint = generated_produce.LeaderIdAndEpoch(7, 9)
        expected.responses[0].partition_responses[0].current_leader = hint
    assert produce.encode(answers, version) == generated_produce.encode_response(expected, version)
    if version >= produce.LEADER_HINTS_FROM:
        expected.node_endpoints = [generated_produce.NodeEndpoint(*nodes[0])]
    body = produce.encode(answers, version, endpoints=nodes)
    assert body == generated_produce.encode_response(expected, version)


@dataclass
class FileSlice:
    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)


def joined(parts: Iterable[Any]) -> bytes:
    return b"".join(part.data if isinstance(part, FileSlice) else part for part in parts)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_responses_are_written_as_the_generated_codec_reads_them(version: int) -> None:
    topics = topics_of(version, fetch.TOPIC_IDS_FROM)
    contents: list[bytes | FileSlice | None] = [b"small", FileSlice(b"large" * 50_000), None]
    answers = [
        fetch.PartitionAnswer(topic, index, index, 100, 99, 5, records)
        for topic in topics
        for index, records in enumerate(contents)
    ]
    parts = fetch.encode(answers, version, 0, 1234)
    assert sum(isinstance(part, FileSlice) for part in parts) == len(topics)
    body = joined(parts)
    response = generated_fetch.decode_response(body, version)
    if version >= fetch.SESSIONS_FROM:
        assert response.session_id == 1234
    for topic, group in zip(topics, response.responses, strict=True):
        assert topic == (group.topic_id if version >= 13 else group.topic)
        for index, partition in enumerate(group.partitions):
            assert (partition.partition_index, partition.error_code, partition.high_watermark) == (
                index,
                index,
                100,
            )
            expected = contents[index]
            expected = expected.data if isinstance(expected, FileSlice) else expected
            assert bytes(partition.records or b"") == (expected or b"")


@given(st.binary(max_size=200), st.sampled_from(list(FETCH_VERSIONS)))
def test_any_bytes_are_a_fetch_or_a_clean_error(data: bytes, version: int) -> None:
    with contextlib.suppress(ProtocolError):
        fetch.decode(memoryview(data), version)


@given(st.binary(max_size=200), st.sampled_from(list(PRODUCE_VERSIONS)))
def test_any_bytes_are_a_produce_or_a_clean_error(data: bytes, version: int) -> None:
    with contextlib.suppress(ProtocolError):
        produce.decode(memoryview(data), version)


def test_mutated_requests_are_read_or_cleanly_refused() -> None:
    dice = random.Random(7)
    for version in FETCH_VERSIONS:
        partitions = [generated_fetch.FetchPartition(partition=n) for n in range(3)]
        key = "topic_id" if version >= 13 else "topic"
        topic = generated_fetch.FetchTopic(**{key: IDS[1] if version >= 13 else "t"}, partitions=partitions)  # type: ignore[arg-type]
        body = bytearray(
            generated_fetch.encode_request(generated_fetch.FetchRequest(topics=[topic]), version)
        )
        for _ in range(2000):
            mutant = bytearray(body[: dice.randrange(len(body) + 1)])
            if mutant:
                mutant[dice.randrange(len(mutant))] = dice.randrange(256)
            with contextlib.suppress(ProtocolError):
                fetch.decode(memoryview(mutant), version)
