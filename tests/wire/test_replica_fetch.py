"""A follower's Fetch: kio writes and reads the same bytes, and no answer makes it stumble."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.fetch.v17 import request as kio_request
from kio.serial import entity_reader

from postroad.errors import ProtocolError
from postroad.wire import fetch, framing, replica_fetch
from postroad.wire.fetch import EpochEnd, FetchRequest, PartitionAnswer, PartitionFetch
from postroad.wire.leader_hints import CurrentLeader, NodeEndpoint
from postroad.wire.messages import fetch as generated

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**31 - 1)
topic_ids = st.integers(1, 200).map(lambda number: bytes([number]) * 16)
offsets = st.integers(0, 2**63 - 1)
partitions = st.builds(
    PartitionFetch, topic_ids, int32, int32, int64, int32, int32, int64, st.just(-1) | offsets
)
requests = st.builds(
    FetchRequest,
    replica_id=int32,
    max_wait_ms=counts,
    min_bytes=counts,
    max_bytes=counts,
    isolation=st.sampled_from([0, 1]),
    session_id=int32,
    session_epoch=int32,
    partitions=st.lists(partitions, max_size=5),
    forgotten=st.lists(st.tuples(topic_ids, int32), max_size=5),
    offset_at=st.just(0),
    replica_epoch=int64,
    rack=st.text(max_size=5),
)
answers = st.builds(
    PartitionAnswer,
    topic_ids,
    int32,
    int16,
    int64,
    int64,
    int64,
    st.none() | st.binary(max_size=200),
    st.none() | st.builds(EpochEnd, int32, int64),
    st.none() | st.builds(CurrentLeader, int32, int32),
    int32,
    st.just(0) | st.integers(0, 2**63 - 1),
    st.just(()),  # followers read what is not committed, too: nobody names aborted transactions to them
)
endpoints = st.lists(
    st.builds(NodeEndpoint, int32, st.text(max_size=5), int32, st.none() | st.text(max_size=5)), max_size=2
)


@given(requests)
def test_a_leader_reads_what_a_follower_sends(request: FetchRequest) -> None:
    body = memoryview(replica_fetch.encode(request))
    assert fetch.decode(body, 17)._replace(offset_at=0) == request


@given(requests)
def test_kio_reads_what_a_follower_sends(request: FetchRequest) -> None:
    as_kafka = [wanted._replace(ahead=-1) for wanted in request.partitions]
    body = replica_fetch.encode(request._replace(partitions=as_kafka))
    read: Any = entity_reader(kio_request.FetchRequest)
    decoded, size = read(body, 0)
    assert size == len(body)
    assert (decoded.session_id, decoded.session_epoch) == (request.session_id, request.session_epoch)
    state = decoded.replica_state
    assert (state.replica_id, state.replica_epoch) == (request.replica_id, request.replica_epoch)
    found = [
        PartitionFetch(
            topic.topic_id.bytes,
            part.partition,
            part.current_leader_epoch,
            part.fetch_offset,
            part.partition_max_bytes,
            part.last_fetched_epoch,
            part.log_start_offset,
        )
        for topic in decoded.topics
        for part in topic.partitions
    ]
    assert found == as_kafka
    assert decoded.rack_id == request.rack


@given(requests)
def test_the_generated_codec_writes_the_same(request: FetchRequest) -> None:
    as_kafka = [wanted._replace(ahead=-1) for wanted in request.partitions]
    body = replica_fetch.encode(request._replace(partitions=as_kafka))
    decoded = generated.decode_request(body, 17)
    assert generated.encode_request(decoded, 17) == body


def test_a_frame_has_the_header_of_its_version() -> None:
    request = FetchRequest(3, 500, 1, 9, 0, 7, 8, [], [], 0, 4)
    frame = memoryview(replica_fetch.encode_frame(request, 99, b"node 3"))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    payload = frame[4:]
    assert framing.REQUEST_HEADER.unpack_from(payload) == (1, 17, 99, 6)
    assert framing.client_id(payload) == "node 3"
    body = payload[framing.body_at(payload, 6, flexible=True) :]
    assert fetch.decode(body, 17).replica_epoch == 4


def response(
    told: list[PartitionAnswer], error: int, session_id: int, nodes: list[NodeEndpoint]
) -> memoryview:
    body = b"".join(fetch.encode(told, 17, error, session_id, nodes))  # type: ignore[arg-type]
    return memoryview(framing.response_head(len(body), 5, flexible=True) + body)[4:]


def fetched(answer: PartitionAnswer) -> replica_fetch.Fetched:
    assert isinstance(answer.topic, bytes)
    records = memoryview(answer.records if isinstance(answer.records, bytes) else b"")
    return replica_fetch.Fetched(
        answer.topic,
        answer.index,
        answer.error,
        answer.high_watermark,
        answer.start_offset,
        answer.diverging,
        answer.leader,
        records,
        answer.purged,
    )


@given(st.lists(answers, max_size=5), int16, int32, endpoints)
def test_a_follower_reads_what_a_leader_answers(
    told: list[PartitionAnswer], error: int, session_id: int, nodes: list[NodeEndpoint]
) -> None:
    payload = response(told, error, session_id, nodes)
    decoded = replica_fetch.decode(payload)
    assert decoded[:3] == (5, error, session_id)
    assert decoded.partitions == [fetched(answer) for answer in told]


def test_records_are_views_of_the_answer() -> None:
    told = [PartitionAnswer(b"t" * 16, 0, 0, 1, 1, 0, b"batch")]
    buffer = bytearray(response(told, 0, 0, []))
    [part] = replica_fetch.decode(memoryview(buffer)).partitions
    at = buffer.index(b"batch")
    buffer[at] = ord("B")
    assert bytes(part.records) == b"Batch"


def test_aborted_transactions_snapshots_and_unknown_tags_are_passed_over() -> None:
    aborted = [generated.AbortedTransaction(1, 2), generated.AbortedTransaction(3, 4)]
    data = generated.PartitionData(
        4,
        0,
        10,
        9,
        1,
        diverging_epoch=generated.EpochEndOffset(3, 8),
        snapshot_id=generated.SnapshotId(5, 6),
        aborted_transactions=aborted,
        records=b"xyz",
    )
    topic = generated.FetchableTopicResponse(topic_id=b"t" * 16, partitions=[data])
    body = generated.encode_response(generated.FetchResponse(session_id=7, responses=[topic]), 17)
    answer = replica_fetch.decode(memoryview(b"\0\0\0\5\1\x09\2ab" + body))
    expected = replica_fetch.Fetched(b"t" * 16, 4, 0, 10, 1, EpochEnd(3, 8), None, memoryview(b"xyz"))
    assert answer.partitions == [expected]


@given(st.binary(max_size=120))
def test_any_bytes_are_an_answer_or_a_clean_error(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        replica_fetch.decode(memoryview(data))


def test_mutated_answers_are_read_or_cleanly_refused() -> None:
    dice = random.Random(17)
    told = [
        PartitionAnswer(b"t" * 16, n, 6, 9, 9, 0, b"r" * 90, EpochEnd(1, 2), CurrentLeader(3, 4), -1)
        for n in range(3)
    ]
    body = response(told, 0, 5, [NodeEndpoint(3, "host", 9092)])
    for _ in range(5000):
        mutant = bytearray(body)
        for _ in range(dice.randrange(1, 4)):
            mutant[dice.randrange(len(mutant))] = dice.randrange(256)
        with contextlib.suppress(ProtocolError):
            replica_fetch.decode(memoryview(mutant)[: dice.randrange(len(mutant) + 1)])


def mutants(data: bytes) -> Iterator[memoryview]:
    dice = random.Random(len(data))
    yield memoryview(data)
    for _ in range(3000):
        mutant = bytearray(data)
        mutant[dice.randrange(len(mutant))] = dice.choice((0, 1, 2, 13, dice.randrange(256)))
        yield memoryview(mutant)


def either(read: Callable[[], object]) -> object:
    try:
        return read()
    except ProtocolError:
        return ProtocolError


def test_what_is_read_with_one_call_is_read_as_the_long_way_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [PartitionFetch(b"t" * 16, 3, 4, 5, 6, 7, 8)]
    request = replica_fetch.encode(FetchRequest(1, 500, 1, 99, 0, 11, 12, wanted, [], 0, 13))
    answer = bytes(response([PartitionAnswer(b"t" * 16, 0, 0, 9, 9, 0, b"r" * 60)], 0, 5, []))

    def read() -> list[object]:
        return [
            *(either(partial(fetch.decode, each, 17)) for each in mutants(request)),
            *(either(partial(replica_fetch.decode, each)) for each in mutants(answer)),
        ]

    at_once = read()
    assert fetch._decode_follower(memoryview(request)) is not None
    assert replica_fetch._decode_one(memoryview(answer)) is not None
    monkeypatch.setattr(fetch, "_decode_follower", lambda body: None)
    monkeypatch.setattr(replica_fetch, "_decode_one", lambda payload: None)
    assert read() == at_once


def test_a_leader_that_does_not_know_of_reading_ahead_sees_what_is_safe() -> None:
    wanted = PartitionFetch(b"t" * 16, 3, 4, 5, 6, 7, 8, ahead=50)
    body = replica_fetch.encode(FetchRequest(1, 500, 1, 99, 0, 11, 12, [wanted], [], 0, 13))
    [topic] = generated.decode_request(body, 17).topics
    assert [partition.fetch_offset for partition in topic.partitions] == [5]
    assert fetch.decode(memoryview(body), 17).partitions == [wanted]


@pytest.mark.parametrize("size", range(0, 140, 3))
def test_an_answer_that_is_cut_is_refused(size: int) -> None:
    told = [PartitionAnswer(b"t" * 16, 0, 6, 9, 9, 0, b"r" * 60, EpochEnd(1, 2))]
    body = response(told, 0, 5, [])
    assert len(body) > size
    with pytest.raises(ProtocolError):
        replica_fetch.decode(body[:size])
