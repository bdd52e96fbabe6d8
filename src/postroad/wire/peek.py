"""Peek (10001), version 0: what a subscription thinks of the messages of one partition, untouched.

Postroad's own API, above any key that Kafka will use. ApiVersions does not list it, since clients that
others wrote choke on keys they can't know: whoever sends it knows that a Postroad node answers. It has
the interface of the modules in `wire.messages`, and their rules for wrong bytes (`wire.primitives`).

    request  := group (string) topic id (16 bytes) partition (int32)
                first offset (int64, -1 from the start) messages at most (int32) tags
    response := error (int16) error message (nullable string)
                start offset, high watermark (int64)
                in flight, ready, waiting, delayed, dying (int32) ranges (array) tags
    range    := first, last (int64) state (string) available at (int64, ms, 0 none)
                member (nullable string) until (int64, ms, 0 none) deliveries (int32) tags

Strings, arrays and tags are those of flexible versions. A range is a run of offsets of which all the
rest is equal; ranges ascend. Times are the broker's wall clock.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    UNREADABLE,
    ZERO_UUID,
    Buffer,
    Message,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 10_001
NAME: Final = "Peek"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

FROM_START: Final = -1

_ASKED: Final = Struct(">16siqi")
_ERROR: Final = Struct(">h")
_FIGURES: Final = Struct(">qqiiiii")
_OFFSETS: Final = Struct(">qq")
_TIME: Final = Struct(">q")
_UNTIL: Final = Struct(">qi")
_RANGE_BYTES_MIN: Final = 39
_NO_TAGS: Final = b"\0"


class PeekRequest(Message):
    __slots__ = ("first_offset", "group", "max_messages", "partition", "topic_id")

    def __init__(
        self,
        group: str = "",
        topic_id: bytes = ZERO_UUID,
        partition: int = 0,
        first_offset: int = FROM_START,
        max_messages: int = 0,
    ) -> None:
        self.group = group
        self.topic_id = topic_id
        self.partition = partition
        self.first_offset = first_offset
        self.max_messages = max_messages


class PeekRange(Message):
    """Messages `first` to `last`, both included."""

    __slots__ = ("available_at_ms", "deliveries", "first", "last", "member", "state", "until_ms")

    def __init__(
        self,
        first: int = 0,
        last: int = 0,
        state: str = "",
        available_at_ms: int = 0,
        member: str | None = None,
        until_ms: int = 0,
        deliveries: int = 0,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.available_at_ms = available_at_ms
        self.member = member
        self.until_ms = until_ms
        self.deliveries = deliveries


class PeekResponse(Message):
    """The counts are of the whole partition, not only of the ranges that are shown."""

    __slots__ = (
        "delayed", "dying", "error_code", "error_message", "high_watermark", "in_flight", "ranges", "ready",
        "start_offset", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        start_offset: int = 0,
        high_watermark: int = 0,
        in_flight: int = 0,
        ready: int = 0,
        waiting: int = 0,
        delayed: int = 0,
        dying: int = 0,
        ranges: list[PeekRange] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.start_offset = start_offset
        self.high_watermark = high_watermark
        self.in_flight = in_flight
        self.ready = ready
        self.waiting = waiting
        self.delayed = delayed
        self.dying = dying
        self.ranges = [] if ranges is None else ranges


def decode_request(body: Buffer, version: int) -> PeekRequest:
    _check_version(version)
    buffer = bytes(body)
    try:
        group, at = _read_string(buffer, 0, "PeekRequest.group")
        topic_id, partition, first_offset, max_messages = _ASKED.unpack_from(buffer, at)
        _read_tags(buffer, at + _ASKED.size, "PeekRequest")
    except UNREADABLE as error:
        raise malformed("Peek request", version, error) from None
    return PeekRequest(group, topic_id, partition, first_offset, max_messages)


def encode_request(request: PeekRequest, version: int) -> bytes:
    _check_version(version)
    try:
        asked = _ASKED.pack(request.topic_id, request.partition, request.first_offset, request.max_messages)
    except struct_error as error:
        raise does_not_fit("Peek request", version, error) from error
    return _string(request.group) + asked + _NO_TAGS


def decode_response(body: Buffer, version: int) -> PeekResponse:
    _check_version(version)
    buffer = bytes(body)
    try:
        (error_code,) = _ERROR.unpack_from(buffer)
        error_message, at = _read_nullable_string(buffer, _ERROR.size, "PeekResponse.error_message")
        figures = _FIGURES.unpack_from(buffer, at)
        ranges, at = _read_ranges(buffer, at + _FIGURES.size)
        _read_tags(buffer, at, "PeekResponse")
    except UNREADABLE as error:
        raise malformed("Peek response", version, error) from None
    start, end, in_flight, ready, waiting, delayed, dying = figures
    return PeekResponse(
        error_code, error_message, start, end, in_flight, ready, waiting, delayed, dying, ranges
    )


def encode_response(response: PeekResponse, version: int) -> bytes:
    _check_version(version)
    try:
        out = [
            _ERROR.pack(response.error_code),
            _nullable_string(response.error_message),
            _FIGURES.pack(
                response.start_offset,
                response.high_watermark,
                response.in_flight,
                response.ready,
                response.waiting,
                response.delayed,
                response.dying,
            ),
            uvarint(len(response.ranges) + 1),
            *map(_range, response.ranges),
            _NO_TAGS,
        ]
    except struct_error as error:
        raise does_not_fit("Peek response", version, error) from error
    return b"".join(out)


def _read_ranges(buffer: bytes, at: int) -> tuple[list[PeekRange], int]:
    count, at = _read_length(buffer, at)
    if not 0 <= count <= (len(buffer) - at) // _RANGE_BYTES_MIN:
        raise bad_length("PeekResponse.ranges", count, len(buffer) - at)
    ranges: list[PeekRange] = []
    for _ in range(count):
        first, last = _OFFSETS.unpack_from(buffer, at)
        state, at = _read_string(buffer, at + _OFFSETS.size, "PeekRange.state")
        (available_at_ms,) = _TIME.unpack_from(buffer, at)
        member, at = _read_nullable_string(buffer, at + _TIME.size, "PeekRange.member")
        until_ms, deliveries = _UNTIL.unpack_from(buffer, at)
        at = _read_tags(buffer, at + _UNTIL.size, "PeekRange")
        ranges.append(PeekRange(first, last, state, available_at_ms, member, until_ms, deliveries))
    return ranges, at


def _range(item: PeekRange) -> bytes:
    return b"".join(
        (
            _OFFSETS.pack(item.first, item.last),
            _string(item.state),
            _TIME.pack(item.available_at_ms),
            _nullable_string(item.member),
            _UNTIL.pack(item.until_ms, item.deliveries),
            _NO_TAGS,
        )
    )


def _read_length(buffer: bytes, at: int) -> tuple[int, int]:
    """(length, position behind it); -1 is null."""
    length = buffer[at]
    at += 1
    if length > 127:
        length, at = long_uvarint(buffer, at, length)
    return length - 1, at


def _read_nullable_string(buffer: bytes, at: int, field: str) -> tuple[str | None, int]:
    length, at = _read_length(buffer, at)
    if length == -1:
        return None, at
    if length > len(buffer) - at:
        raise bad_length(field, length, len(buffer) - at)
    return buffer[at : at + length].decode(), at + length


def _read_string(buffer: bytes, at: int, field: str) -> tuple[str, int]:
    text, end = _read_nullable_string(buffer, at, field)
    if text is None:
        raise bad_length(field, -1, len(buffer) - end)
    return text, end


def _read_tags(buffer: bytes, at: int, struct: str) -> int:
    """The position behind tagged fields, none of which is known."""
    return skip_tags(buffer, at + 1, len(buffer), buffer[at], struct)


def _string(text: str) -> bytes:
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw


def _nullable_string(text: str | None) -> bytes:
    return b"\0" if text is None else _string(text)


def _check_version(version: int) -> None:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
