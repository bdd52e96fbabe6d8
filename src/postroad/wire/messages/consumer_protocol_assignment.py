# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ConsumerProtocolAssignment, versions 0 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    INT32_ARRAYS,
    UNREADABLE,
    Buffer,
    Message,
    bad_length,
    does_not_fit,
    malformed,
    unsupported,
)

NAME: Final = "ConsumerProtocolAssignment"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 3
FLEXIBLE_FROM: Final = 32767

new = object.__new__


class TopicPartition(Message):
    __slots__ = ("topic", "partitions")
    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data")
    assigned_partitions: list[TopicPartition]
    user_data: bytes | None

    def __init__(
        self,
        assigned_partitions: list[TopicPartition] | None = None,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is None else assigned_partitions
        self.user_data = user_data


def decode(body: Buffer, version: int) -> ConsumerProtocolAssignment:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_consumer_protocol_assignment(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ConsumerProtocolAssignment", version, error) from None
    return items[0]


def encode(data: ConsumerProtocolAssignment, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_consumer_protocol_assignment(out, (data,), version)
    except struct_error as error:
        raise does_not_fit("ConsumerProtocolAssignment", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")


def _read_topic_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicPartition], int]:
    items: list[TopicPartition] = []
    for _ in range(number):
        item = new(TopicPartition)
        (length,) = _h.unpack_from(buffer, position)
        position += 2
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TopicPartition.topic", length, end - position)
        item.topic = buffer[position:stop].decode()
        position = stop
        (count,) = _i.unpack_from(buffer, position)
        position += 4
        if count < 0 or count > (end - position) // 4:
            raise bad_length("TopicPartition.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        items.append(item)
    return items, position


def _write_topic_partition(out: list[Buffer], items: Sequence[TopicPartition], version: int) -> None:
    for item in items:
        raw = item.topic.encode()
        out.append(_h.pack(len(raw)))
        out.append(raw)
        out.append(_i.pack(len(item.partitions)))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))


def _read_consumer_protocol_assignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ConsumerProtocolAssignment], int]:
    items: list[ConsumerProtocolAssignment] = []
    for _ in range(number):
        item = new(ConsumerProtocolAssignment)
        (count,) = _i.unpack_from(buffer, position)
        position += 4
        if count < 0 or count > (end - position) // 6:
            raise bad_length("ConsumerProtocolAssignment.assigned_partitions", count, end - position)
        item.assigned_partitions, position = _read_topic_partition(buffer, position, end, version, count)
        (length,) = _i.unpack_from(buffer, position)
        position += 4
        if length == -1:
            item.user_data = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerProtocolAssignment.user_data", length, end - position)
            item.user_data = buffer[position:stop]
            position = stop
        items.append(item)
    return items, position


def _write_consumer_protocol_assignment(
    out: list[Buffer], items: Sequence[ConsumerProtocolAssignment], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(len(item.assigned_partitions)))
        if item.assigned_partitions:
            _write_topic_partition(out, item.assigned_partitions, version)
        raw = b"" if item.user_data is None else item.user_data
        out.append(_i.pack(-1 if item.user_data is None else len(raw)))
        out.append(raw)
