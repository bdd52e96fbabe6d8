"""ShareFetch and ShareAcknowledge by hand: read and written as the generated codec does it, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ProtocolError, UnsupportedVersion
from postroad.wire import share_acknowledge, share_fetch
from postroad.wire.messages import share_acknowledge as generated_acknowledge
from postroad.wire.messages import share_fetch as generated_fetch
from postroad.wire.share_requests import (
    LATE_ACCEPTS,
    LATE_CHANGES,
    NOT_GIVEN,
    NOTHING_LATE,
    InTransaction,
    PartitionAcknowledgements,
    write_private_tags,
)

VERSIONS = (1, 2)
NUMBERS = ("share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size")
NO_LEADER_FETCH = generated_fetch.LeaderIdAndEpoch(-1, -1)
NO_LEADER_ACKNOWLEDGE = generated_acknowledge.LeaderIdAndEpoch(-1, -1)

ids = st.binary(min_size=16, max_size=16)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
texts = st.none() | st.text(max_size=8) | st.just("x" * 200)
kinds = st.lists(st.integers(0, 4), max_size=4) | st.just([1] * 500) | st.just([1])
batches = st.lists(st.tuples(int64, int64, kinds), max_size=3)
topics = st.lists(st.tuples(ids, st.lists(st.tuples(int32, batches), max_size=3)), max_size=3)
one_batch = st.tuples(ids, st.tuples(int32, st.tuples(int64, int64, st.just([2]))))
usual_topics = one_batch.map(lambda drawn: [(drawn[0], [(drawn[1][0], [drawn[1][1]])])])
named_topics = topics | usual_topics
forgotten_topics = st.lists(st.tuples(ids, st.lists(int32, max_size=3)), max_size=2)
milliseconds = st.just(NOT_GIVEN) | st.integers(0, 2**31 - 1)


def fetch_request(group: Any, member: Any, numbers: Any, named: Any, forgotten: Any, version: int) -> bytes:
    request = generated_fetch.ShareFetchRequest(
        group_id=group,
        member_id=member,
        **dict(zip(NUMBERS, numbers, strict=False)),
        share_acquire_mode=1 if version >= 2 else 0,
        is_renew_ack=version >= 2 and numbers[6] > 0,
        topics=[
            generated_fetch.FetchTopic(
                topic,
                [
                    generated_fetch.FetchPartition(
                        index, [generated_fetch.AcknowledgementBatch(*batch) for batch in acknowledged]
                    )
                    for index, acknowledged in partitions
                ],
            )
            for topic, partitions in named
        ],
        forgotten_topics_data=[generated_fetch.ForgottenTopic(*topic) for topic in forgotten],
    )
    return generated_fetch.encode_request(request, version)


def acknowledge_request(group: Any, member: Any, epoch: int, renew: bool, named: Any, version: int) -> bytes:
    request = generated_acknowledge.ShareAcknowledgeRequest(
        group,
        member,
        epoch,
        is_renew_ack=renew and version >= 2,
        topics=[
            generated_acknowledge.AcknowledgeTopic(
                topic,
                [
                    generated_acknowledge.AcknowledgePartition(
                        index, [generated_acknowledge.AcknowledgementBatch(*batch) for batch in acknowledged]
                    )
                    for index, acknowledged in partitions
                ],
            )
            for topic, partitions in named
        ],
    )
    return generated_acknowledge.encode_request(request, version)


def flat(decoded: Any) -> list[PartitionAcknowledgements]:
    """The partitions that the generated codec read, as ours gives them."""
    return [
        PartitionAcknowledgements(
            topic.topic_id,
            partition.partition_index,
            [
                (
                    batch.first_offset,
                    batch.last_offset,
                    bytes(kind & 0xFF for kind in batch.acknowledge_types),
                )
                for batch in partition.acknowledgement_batches
            ],
        )
        for topic in decoded.topics
        for partition in topic.partitions
    ]


def same_fetch(ours: share_fetch.ShareFetchRequest, theirs: generated_fetch.ShareFetchRequest) -> bool:
    forgotten = [
        (topic.topic_id, index) for topic in theirs.forgotten_topics_data for index in topic.partitions
    ]
    return ours[:-3] == (  # all but our own tags
        theirs.group_id,
        theirs.member_id,
        theirs.share_session_epoch,
        theirs.max_wait_ms,
        theirs.min_bytes,
        theirs.max_bytes,
        theirs.max_records,
        theirs.batch_size,
        theirs.share_acquire_mode,
        theirs.is_renew_ack,
        flat(theirs),
        forgotten,
    )


def same_acknowledge(
    ours: share_acknowledge.ShareAcknowledgeRequest, theirs: generated_acknowledge.ShareAcknowledgeRequest
) -> bool:
    return ours[:5] == (
        theirs.group_id,
        theirs.member_id,
        theirs.share_session_epoch,
        theirs.is_renew_ack,
        flat(theirs),
    )


# --- requests ----------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    group=texts,
    member=texts,
    numbers=st.tuples(*[int32] * 7),
    named=named_topics,
    forgotten=forgotten_topics,
    version=st.sampled_from(VERSIONS),
    lock_ms=milliseconds,
)
def test_share_fetch_requests_are_read_as_the_generated_codec_reads_them(
    group: Any, member: Any, numbers: Any, named: Any, forgotten: Any, version: int, lock_ms: int
) -> None:
    body = fetch_request(group, member, numbers, named, forgotten, version)
    ours = share_fetch.decode(memoryview(body), version)
    assert same_fetch(ours, generated_fetch.decode_request(body, version))
    assert ours.lock_ms == NOT_GIVEN
    tagged = body[:-1] + write_private_tags(lock_ms, owner=group or "", run_max=numbers[0] & 0xFF)
    expected = ours._replace(lock_ms=lock_ms, owner=group or "", run_max=numbers[0] & 0xFF)
    assert share_fetch.decode(memoryview(tagged), version) == expected
    assert same_fetch(ours, generated_fetch.decode_request(tagged, version))


@settings(max_examples=150, deadline=None)
@given(
    group=texts,
    member=texts,
    epoch=int32,
    renew=st.booleans(),
    named=named_topics,
    version=st.sampled_from(VERSIONS),
    lock_ms=milliseconds,
    delay_ms=milliseconds,
    late=st.sampled_from([NOT_GIVEN, NOTHING_LATE, LATE_ACCEPTS, LATE_CHANGES]),
    transaction=st.none() | st.builds(InTransaction, int64, st.integers(-(2**15), 2**15 - 1), st.text()),
)
def test_share_acknowledge_requests_are_read_as_the_generated_codec_reads_them(
    group: Any,
    member: Any,
    epoch: int,
    renew: bool,
    named: Any,
    version: int,
    lock_ms: int,
    delay_ms: int,
    late: int,
    transaction: InTransaction | None,
) -> None:
    body = acknowledge_request(group, member, epoch, renew, named, version)
    ours = share_acknowledge.decode(memoryview(body), version)
    assert same_acknowledge(ours, generated_acknowledge.decode_request(body, version))
    assert (ours.lock_ms, ours.delay_ms) == (NOT_GIVEN, NOT_GIVEN)
    given = {"owner": member or "", "late": late, "transaction": transaction}
    tagged = body[:-1] + write_private_tags(lock_ms, delay_ms, **given)  # type: ignore[arg-type]
    expected = ours._replace(lock_ms=lock_ms, delay_ms=delay_ms, **given)  # type: ignore[arg-type]
    assert share_acknowledge.decode(memoryview(tagged), version) == expected


def test_tags_of_others_are_skipped_and_ours_must_fill_their_size() -> None:
    body = acknowledge_request("g", "m", 1, False, [], 1)
    lock = write_private_tags(lock_ms=5)[1:]
    both = body[:-1] + b"\3" + b"\1\2xx" + lock + b"\x95\x4e\0"
    assert share_acknowledge.decode(both, 1).lock_ms == 5
    negative = body[:-1] + b"\1\x91\x4e\4\xff\xff\xff\x00"
    assert share_acknowledge.decode(negative, 1).lock_ms == NOT_GIVEN
    short = b"\1\x97\x4e\x09" + bytes(9)  # a producer id, and half an epoch
    for wrong in (b"\1\x91\x4e\3\0\0\0", b"\2" + lock + lock, b"\1\x91\x4e\4\0\0\0", b"\1\1\x7f", short):
        with pytest.raises(ProtocolError):
            share_acknowledge.decode(body[:-1] + wrong, 1)


@pytest.mark.parametrize("version", [0, 3])
def test_other_versions_are_refused(version: int) -> None:
    for decode in (share_fetch.decode, share_acknowledge.decode):
        with pytest.raises(UnsupportedVersion):
            decode(b"", version)


def outcome(decode: Callable[[bytes, int], Any], body: bytes, version: int) -> Any:
    """What was read, or None if that was cleanly refused."""
    try:
        return decode(body, version)
    except ProtocolError:
        return None


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_requests_are_read_alike_or_refused_alike(version: int) -> None:
    dice = random.Random(version)
    one = [(b"t" * 16, [(3, [(5, 9, [1])])])]
    many = [
        (b"t" * 16, [(3, [(5, 9, [1]), (10, 12, [1, 2, 3])]), (4, [])]),
        (b"u" * 16, [(1, [(1, 1, [2])])]),
    ]
    for named in ([], one, many):
        fetch = fetch_request(
            "g", "m", range(7), named, [(b"f" * 16, [1, 2])] if named is many else [], version
        )
        acknowledge = acknowledge_request("g", "m", 4, True, named, version)
        for _ in range(1500):
            mutant = mutated(fetch, dice)
            ours = outcome(share_fetch.decode, mutant, version)
            theirs = outcome(generated_fetch.decode_request, mutant, version)
            assert (ours is None) == (theirs is None)
            assert ours is None or same_fetch(ours, theirs)
            mutant = mutated(acknowledge, dice)
            ours = outcome(share_acknowledge.decode, mutant, version)
            theirs = outcome(generated_acknowledge.decode_request, mutant, version)
            assert (ours is None) == (theirs is None)
            assert ours is None or same_acknowledge(ours, theirs)


def mutated(body: bytes, dice: random.Random) -> bytes:
    mutant = bytearray(body if dice.random() < 0.7 else body[: dice.randrange(1, len(body) + 1)])
    for _ in range(dice.randrange(1, 3)):
        mutant[dice.randrange(len(mutant))] = dice.choice((0, 1, 2, 3, 127, 128, 255, dice.randrange(256)))
    return bytes(mutant)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), version=st.sampled_from(VERSIONS))
def test_any_bytes_are_a_request_or_a_clean_error(data: bytes, version: int) -> None:
    outcome(share_fetch.decode, data, version)
    outcome(share_acknowledge.decode, data, version)


# --- responses ---------------------------------------------------------------------------------

pieces = st.lists(st.binary(max_size=40) | st.just(b"r" * 20_000), max_size=3)
acquired_ranges = st.lists(st.tuples(int64, int64, int16), max_size=3) | st.just([(1, 1, 1)] * 200)
errors = st.just((0, None, 0, None)) | st.tuples(int16, texts, int16, texts)
fetched = st.lists(
    st.tuples(ids, st.lists(st.tuples(int32, pieces, acquired_ranges, errors), max_size=3)), max_size=3
)


def without_idle_messages(error: tuple[Any, ...]) -> tuple[Any, ...]:
    """A message belongs to an error."""
    code, message, acknowledge_code, acknowledge_message = error
    return (
        (code, message, acknowledge_code, acknowledge_message)
        if code or acknowledge_code
        else (0, None, 0, None)
    )


@settings(max_examples=150, deadline=None)
@given(answered=fetched, lock_ms=int32, error=st.just((0, None)) | st.tuples(int16, texts))
def test_share_fetch_responses_are_written_as_the_generated_codec_writes_them(
    answered: Any, lock_ms: int, error: Any
) -> None:
    answers, responses = [], []
    for topic, partitions in ((topic, group) for topic, group in dict(answered).items() if group):
        written = []
        for index, records, acquired, drawn in partitions:
            errors: Any = without_idle_messages(drawn)
            answers.append(share_fetch.PartitionAnswer(topic, index, records, acquired, *errors))
            ranges = [generated_fetch.AcquiredRecords(*each) for each in acquired]
            written.append(
                generated_fetch.PartitionData(*(index, *errors, NO_LEADER_FETCH, b"".join(records), ranges))
            )
        responses.append(generated_fetch.ShareFetchableTopicResponse(topic, written))
    code, message = error if error[0] else (0, None)
    parts = share_fetch.encode(answers, lock_ms, code, message)
    response = generated_fetch.ShareFetchResponse(0, code, message, lock_ms, responses, [])
    for version in VERSIONS:
        assert b"".join(parts) == generated_fetch.encode_response(response, version)


def test_large_records_are_not_copied() -> None:
    large, small = memoryview(b"l" * 100_000), memoryview(b"s" * 100)
    for count in (1, 2):
        answers = [
            share_fetch.PartitionAnswer(b"t" * 16, n, [large, small], [(0, 9, 1)]) for n in range(count)
        ]
        parts = share_fetch.encode(answers, 30_000)
        assert sum(part is large for part in parts) == count
        assert len(share_fetch.encode([answers[0]._replace(records=[small])], 30_000)) == 1


@settings(max_examples=100, deadline=None)
@given(
    answered=st.dictionaries(
        ids, st.lists(st.tuples(int32, int16, texts), min_size=1, max_size=3), max_size=3
    ),
    lock_ms=int32,
    error=st.tuples(int16, texts),
    version=st.sampled_from(VERSIONS),
)
def test_share_acknowledge_responses_are_written_as_the_generated_codec_writes_them(
    answered: Any, lock_ms: int, error: Any, version: int
) -> None:
    answers = [
        share_acknowledge.PartitionAnswer(topic, *each) for topic in answered for each in answered[topic]
    ]
    responses = [
        generated_acknowledge.ShareAcknowledgeTopicResponse(
            topic, [generated_acknowledge.PartitionData(*(*each, NO_LEADER_ACKNOWLEDGE)) for each in group]
        )
        for topic, group in answered.items()
    ]
    lock = lock_ms if version >= 2 else 0
    response = generated_acknowledge.ShareAcknowledgeResponse(*(0, *error, lock, responses, []))
    body = share_acknowledge.encode(answers, version, lock_ms, *error)
    assert body == generated_acknowledge.encode_response(response, version)
