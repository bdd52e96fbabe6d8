"""What ShareFetch and ShareAcknowledge have in common: acknowledgements, private tags, topics of an answer.

    topics     := count { topic id (16) count { partition (int32) batches tags } tags }
    batches    := count { first (int64) last (int64) types tags }
    types      := count { int8 }                    one for all offsets, or one for each

Counts are those of compact arrays. Lengths are checked against the bytes that are left before anything
is made of them; tags that are not ours are skipped. Our own stand at the end of a request, where Kafka's
brokers skip them in turn. A node locks nothing for more than 12 hours, nor delays it for more than a day:

    10001  lock_ms    int32   how long to lock what is acquired or renewed
    10002  delay_ms   int32   released messages come back after this time (ShareAcknowledge only)
    10003  owner      text    who holds what is acquired, or acknowledges, instead of the session's member
    10004  run_max    int32   how many messages of one key may come in one answer (ShareFetch only)
    10005  reason     text    why messages are rejected, for their dead letters (ShareAcknowledge only)
    10006  late       int32   what an owner may say when its lock is over: 0 nothing, 1 accept (also if it is
                              not given), 2 accept, release and renew (ShareAcknowledge only)
    10007  producer   int64, int16, text
                              producer id, epoch and transactional id: the transaction of which all
                              acknowledgements of the request are a part (ShareAcknowledge only)

Two types of acknowledgement are ours, too. 100, returned: the message was never shown to anybody, so that its
delivery does not count, and it is there for others at once. 101, pledged: it is accepted if the transaction
commits that a tag names. Brokers that don't know it refuse it, so none takes it for an accept.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeVar

from postroad.wire.primitives import (
    SHORT_UVARINTS,
    bad_length,
    bad_tag_size,
    long_uvarint,
    read_tag,
    skip_tags,
    uvarint,
)

LOCK_MS_TAG: Final = 10001
DELAY_MS_TAG: Final = 10002
OWNER_TAG: Final = 10003
RUN_MAX_TAG: Final = 10004
REASON_TAG: Final = 10005
LATE_TAG: Final = 10006
PRODUCER_TAG: Final = 10007
NOT_GIVEN: Final = -1

# Values of LATE_TAG.
NOTHING_LATE: Final = 0
LATE_ACCEPTS: Final = 1
LATE_CHANGES: Final = 2

_PARTITION: Final = Struct(">iB")
_BATCH: Final = Struct(">qqB")
_ONE_TYPE: Final = Struct(">qqxcx")  # a batch with one type and no tags
_INT: Final = Struct(">i")
_PRODUCER: Final = Struct(">qh")
# One topic, one partition, one batch, one type, each after its count: what most acknowledgements are.
_ONE_BATCH: Final = Struct(">B16sBiBqqBcBBB")
_NO_TAGS: Final = [0, 0, 0]
# What an element takes at least: a count that asks for more than is left is refused.
_TOPIC_BYTES: Final = 18
_PARTITION_BYTES: Final = 6
_BATCH_BYTES: Final = 18


class _OfTopic(Protocol):
    @property
    def topic(self) -> bytes: ...


Answer = TypeVar("Answer", bound=_OfTopic)


AcknowledgementBatch = tuple[int, int, bytes]
"""First and last offset, and their types: one for all, or one for each."""


class PartitionAcknowledgements(NamedTuple):
    topic: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index
    batches: list[AcknowledgementBatch]


def read_topics(buffer: bytes, position: int) -> tuple[list[PartitionAcknowledgements], int]:
    """The partitions of all topics, and the position behind them."""
    if buffer[position] == 1:  # nothing that is new to the session
        return [], position + 1
    if len(buffer) - position >= _ONE_BATCH.size:  # all in one go, if it is what stands there
        a, topic, b, index, c, first, last, d, kind, *tags = _ONE_BATCH.unpack_from(buffer, position)
        if a == b == c == d == 2 and tags == _NO_TAGS:
            only = _new(PartitionAcknowledgements, (topic, index, [(first, last, kind)]))
            return [only], position + _ONE_BATCH.size
    partitions: list[PartitionAcknowledgements] = []
    topics, position = _read_count(buffer, position, _TOPIC_BYTES, "topics")
    for _ in range(topics):
        topic = buffer[position : position + 16]
        number, position = _read_count(buffer, position + 16, _PARTITION_BYTES, "partitions")
        for _ in range(number):
            index, count = _PARTITION.unpack_from(buffer, position)
            batches, position = _read_batches(buffer, position + 4) if count != 1 else ([], position + 5)
            position = _skip_tags(buffer, position, "partition")
            partitions.append(_new(PartitionAcknowledgements, (topic, index, batches)))
        position = _skip_tags(buffer, position, "topic")
    return partitions, position


def _read_batches(buffer: bytes, position: int) -> tuple[list[AcknowledgementBatch], int]:
    number, position = _read_count(buffer, position, _BATCH_BYTES, "acknowledgement_batches")
    size = _ONE_TYPE.size
    stop = position + number * size
    array = buffer[position:stop]
    if array[16::size] == b"\2" * number and array[18::size] == bytes(number):
        return list(_ONE_TYPE.iter_unpack(array)), stop  # nearly all: read in one go
    batches: list[AcknowledgementBatch] = []
    for _ in range(number):
        first, last, size = _BATCH.unpack_from(buffer, position)
        position += 17
        if size > 127:
            size, position = long_uvarint(buffer, position, size)
        stop = position + size - 1
        if stop < position or stop > len(buffer):
            raise bad_length("acknowledge_types", size - 1, len(buffer) - position)
        batches.append((first, last, buffer[position:stop]))
        position = _skip_tags(buffer, stop, "acknowledgement batch")
    return batches, position


def read_forgotten(buffer: bytes, position: int) -> tuple[list[tuple[bytes, int]], int]:
    """Topic ids and partitions that leave a session, and the position behind them."""
    forgotten: list[tuple[bytes, int]] = []
    topics, position = _read_count(buffer, position, _TOPIC_BYTES, "forgotten topics")
    for _ in range(topics):
        topic = buffer[position : position + 16]
        number, position = _read_count(buffer, position + 16, _INT.size, "forgotten partitions")
        stop = position + number * _INT.size
        forgotten += [(topic, index) for (index,) in _INT.iter_unpack(buffer[position:stop])]
        position = _skip_tags(buffer, stop, "forgotten topic")
    return forgotten, position


def read_text(buffer: bytes, position: int, field: str) -> tuple[str | None, int]:
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_uvarint(buffer, position, size)
    if size == 0:
        return None, position
    stop = position + size - 1
    if stop > len(buffer):
        raise bad_length(field, size - 1, len(buffer) - position)
    return buffer[position:stop].decode(), stop


class InTransaction(NamedTuple):
    """Whose transaction something is a part of."""

    producer_id: int
    epoch: int
    transactional_id: str


class PrivateTags(NamedTuple):
    lock_ms: int = NOT_GIVEN
    delay_ms: int = NOT_GIVEN
    owner: str = ""  # "": the member itself
    run_max: int = NOT_GIVEN
    reason: str = ""
    late: int = NOT_GIVEN
    transaction: InTransaction | None = None


NO_TAGS: Final = PrivateTags()


def read_private_tags(buffer: bytes, position: int, request: str) -> PrivateTags:
    """Our own from the tags at the end of a request; a time that is negative counts as not given."""
    count = buffer[position]
    if not count:
        return NO_TAGS
    position += 1
    if count > 127:
        count, position = long_uvarint(buffer, position, count)
    given = dict.fromkeys((LOCK_MS_TAG, DELAY_MS_TAG, RUN_MAX_TAG, LATE_TAG), NOT_GIVEN)
    owner, reason, transaction, tag, end = "", "", None, -1, len(buffer)
    for _ in range(count):  # ends with the body: each takes two bytes at least
        tag, start, position = read_tag(buffer, position, end, tag, request)
        if tag in given:
            if position - start != _INT.size:
                raise bad_tag_size(request, tag)
            given[tag] = max(_INT.unpack_from(buffer, start)[0], NOT_GIVEN)
        elif tag == OWNER_TAG:
            owner = buffer[start:position].decode()
        elif tag == REASON_TAG:
            reason = buffer[start:position].decode()
        elif tag == PRODUCER_TAG:
            if position - start < _PRODUCER.size:
                raise bad_tag_size(request, tag)
            name = buffer[start + _PRODUCER.size : position].decode()
            producer_id, epoch = _PRODUCER.unpack_from(buffer, start)
            transaction = InTransaction(producer_id, epoch, name)
    times = given[LOCK_MS_TAG], given[DELAY_MS_TAG]
    return PrivateTags(*times, owner, given[RUN_MAX_TAG], reason, given[LATE_TAG], transaction)


def write_private_tags(
    lock_ms: int = NOT_GIVEN,
    delay_ms: int = NOT_GIVEN,
    owner: str = "",
    run_max: int = NOT_GIVEN,
    reason: str = "",
    late: int = NOT_GIVEN,
    transaction: InTransaction | None = None,
) -> bytes:
    """The tags at the end of a request, in place of the single 0 that says that there are none."""
    given = [(LOCK_MS_TAG, lock_ms), (DELAY_MS_TAG, delay_ms)]
    fields = [uvarint(tag) + b"\4" + _INT.pack(ms) for tag, ms in given if ms != NOT_GIVEN]
    if owner:
        fields.append(_text_tag(OWNER_TAG, owner))
    if run_max != NOT_GIVEN:
        fields.append(uvarint(RUN_MAX_TAG) + b"\4" + _INT.pack(run_max))
    if reason:
        fields.append(_text_tag(REASON_TAG, reason))
    if late != NOT_GIVEN:
        fields.append(uvarint(LATE_TAG) + b"\4" + _INT.pack(late))
    if transaction is not None:
        producer_id, epoch, name = transaction
        raw = _PRODUCER.pack(producer_id, epoch) + name.encode()
        fields.append(uvarint(PRODUCER_TAG) + uvarint(len(raw)) + raw)
    return b"".join((uvarint(len(fields)), *fields))


def _text_tag(tag: int, text: str) -> bytes:
    raw = text.encode()
    return uvarint(tag) + uvarint(len(raw)) + raw


def write_text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    raw = text.encode()
    return write_count(len(raw)) + raw


def write_count(count: int) -> bytes:
    """The length of a compact array, text or bytes."""
    return SHORT_UVARINTS[count + 1] if count < 127 else uvarint(count + 1)


def by_topic(answers: Iterable[Answer]) -> list[tuple[bytes, list[Answer]]]:
    """Answers of one topic that stand together."""
    groups: list[tuple[bytes, list[Answer]]] = []
    for answer in answers:
        if not groups or groups[-1][0] != answer.topic:
            groups.append((answer.topic, []))
        groups[-1][1].append(answer)
    return groups


def _read_count(buffer: bytes, position: int, element_bytes: int, field: str) -> tuple[int, int]:
    """A compact array's count, and the position behind it."""
    count = buffer[position]
    position += 1
    if count > 127:
        count, position = long_uvarint(buffer, position, count)
    if count == 0 or (count - 1) * element_bytes > len(buffer) - position:
        raise bad_length(field, count - 1, len(buffer) - position)
    return count - 1, position


def _skip_tags(buffer: bytes, position: int, struct: str) -> int:
    if tags := buffer[position]:
        return skip_tags(buffer, position + 1, len(buffer), tags, struct)
    return position + 1


_new = tuple.__new__  # half the time of the constructor
