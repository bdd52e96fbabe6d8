# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ConsumerProtocolSubscription, versions 0 to 3."""

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

NAME: Final = "ConsumerProtocolSubscription"
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


class ConsumerProtocolSubscription(Message):
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")
    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[TopicPartition]  # v1+
    generation_id: int  # v2+
    rack_id: str | None  # v3+

    def __init__(
        self,
        topics: list[str] | None = None,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] | None = None,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is None else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id


def decode(body: Buffer, version: int) -> ConsumerProtocolSubscription:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_consumer_protocol_subscription(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ConsumerProtocolSubscription", version, error) from None
    return items[0]


def encode(data: ConsumerProtocolSubscription, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_consumer_protocol_subscription(out, (data,), version)
    except struct_error as error:
        raise does_not_fit("ConsumerProtocolSubscription", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")
_ih = Struct(">ih")


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


def _read_consumer_protocol_subscription(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ConsumerProtocolSubscription], int]:
    items: list[ConsumerProtocolSubscription] = []
    for _ in range(number):
        item = new(ConsumerProtocolSubscription)
        (count,) = _i.unpack_from(buffer, position)
        position += 4
        if count < 0 or count > (end - position) // 2:
            raise bad_length("ConsumerProtocolSubscription.topics", count, end - position)
        item.topics = []
        append = item.topics.append
        for _ in range(count):
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerProtocolSubscription.topics", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        (length,) = _i.unpack_from(buffer, position)
        position += 4
        if length == -1:
            item.user_data = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerProtocolSubscription.user_data", length, end - position)
            item.user_data = buffer[position:stop]
            position = stop
        if version >= 1:
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ConsumerProtocolSubscription.owned_partitions", count, end - position)
            item.owned_partitions, position = _read_topic_partition(buffer, position, end, version, count)
        else:
            item.owned_partitions = []
        if version >= 3:
            item.generation_id, length = _ih.unpack_from(buffer, position)
            position += 6
        elif version >= 2:
            (item.generation_id,) = _i.unpack_from(buffer, position)
            position += 4
        else:
            item.generation_id = -1
        if version >= 3:
            if length == -1:
                item.rack_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ConsumerProtocolSubscription.rack_id", length, end - position)
                item.rack_id = buffer[position:stop].decode()
                position = stop
        else:
            item.rack_id = None
        items.append(item)
    return items, position


def _write_consumer_protocol_subscription(
    out: list[Buffer], items: Sequence[ConsumerProtocolSubscription], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(len(item.topics)))
        if item.topics:
            for text in item.topics:
                raw = text.encode()
                out.append(_h.pack(len(raw)))
                out.append(raw)
        raw = b"" if item.user_data is None else item.user_data
        out.append(_i.pack(-1 if item.user_data is None else len(raw)))
        out.append(raw)
        if version >= 1:
            out.append(_i.pack(len(item.owned_partitions)))
            if item.owned_partitions:
                _write_topic_partition(out, item.owned_partitions, version)
        if version >= 2:
            out.append(_i.pack(item.generation_id))
        if version >= 3:
            raw = b"" if item.rack_id is None else item.rack_id.encode()
            out.append(_h.pack(-1 if item.rack_id is None else len(raw)))
            out.append(raw)
