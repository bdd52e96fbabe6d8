# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ConsumerGroupDescribe (69), versions 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    INT32_ARRAYS,
    SHORT_UVARINTS,
    UNREADABLE,
    ZERO_UUID,
    Buffer,
    Message,
    bad_bool,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 69
NAME: Final = "ConsumerGroupDescribe"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 0

new = object.__new__


class ConsumerGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations")
    group_ids: list[str]
    include_authorized_operations: bool

    def __init__(
        self,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is None else group_ids
        self.include_authorized_operations = include_authorized_operations


class TopicPartitions(Message):
    __slots__ = ("topic_id", "topic_name", "partitions")
    topic_id: bytes
    topic_name: str
    partitions: list[int]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    topic_partitions: list[TopicPartitions]

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class Member(Message):
    __slots__ = (
        "member_id", "instance_id", "rack_id", "member_epoch", "client_id", "client_host",
        "subscribed_topic_names", "subscribed_topic_regex", "assignment", "target_assignment", "member_type",
    )
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    assignment: Assignment
    target_assignment: Assignment
    member_type: int  # v1+

    def __init__(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is None else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.member_type = member_type


class DescribedGroup(Message):
    __slots__ = (
        "error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch",
        "assignor_name", "members", "authorized_operations",
    )
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: list[Member]
    authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    throttle_time_ms: int
    groups: list[DescribedGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups


def decode_request(body: Buffer, version: int) -> ConsumerGroupDescribeRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_consumer_group_describe_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ConsumerGroupDescribe request", version, error) from None
    return items[0]


def encode_request(request: ConsumerGroupDescribeRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_consumer_group_describe_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ConsumerGroupDescribe request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ConsumerGroupDescribeResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_consumer_group_describe_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ConsumerGroupDescribe response", version, error) from None
    return items[0]


def encode_response(response: ConsumerGroupDescribeResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_consumer_group_describe_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ConsumerGroupDescribe response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_bB = Struct(">bB")
_bx = Struct(">bx")
_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")
_iiB = Struct(">iiB")
_ix = Struct(">ix")


def _read_consumer_group_describe_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ConsumerGroupDescribeRequest], int]:
    items: list[ConsumerGroupDescribeRequest] = []
    for _ in range(number):
        item = new(ConsumerGroupDescribeRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > end - position:
            raise bad_length("ConsumerGroupDescribeRequest.group_ids", count, end - position)
        item.group_ids = []
        append = item.group_ids.append
        for _ in range(count):
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerGroupDescribeRequest.group_ids", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        include_authorized_operations, tags = _BB.unpack_from(buffer, position)
        position += 2
        if include_authorized_operations > 1:
            raise bad_bool(
                "ConsumerGroupDescribeRequest.include_authorized_operations", include_authorized_operations,
            )
        item.include_authorized_operations = include_authorized_operations == 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ConsumerGroupDescribeRequest")
        items.append(item)
    return items, position


def _write_consumer_group_describe_request(
    out: list[Buffer], items: Sequence[ConsumerGroupDescribeRequest], version: int,
) -> None:
    for item in items:
        length = len(item.group_ids) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.group_ids:
            for text in item.group_ids:
                raw = text.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        out.append(_Zx.pack(item.include_authorized_operations))


def _read_topic_partitions(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicPartitions], int]:
    items: list[TopicPartitions] = []
    for _ in range(number):
        item = new(TopicPartitions)
        item.topic_id, length = _16sB.unpack_from(buffer, position)
        position += 17
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TopicPartitions.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("TopicPartitions.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TopicPartitions")
        items.append(item)
    return items, position


def _write_topic_partitions(out: list[Buffer], items: Sequence[TopicPartitions], version: int) -> None:
    for item in items:
        out.append(item.topic_id)
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))
        out.append(b"\0")


def _read_assignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[Assignment], int]:
    items: list[Assignment] = []
    for _ in range(number):
        item = new(Assignment)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 19:
            raise bad_length("Assignment.topic_partitions", count, end - position)
        item.topic_partitions, position = _read_topic_partitions(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "Assignment")
        items.append(item)
    return items, position


def _write_assignment(out: list[Buffer], items: Sequence[Assignment], version: int) -> None:
    for item in items:
        length = len(item.topic_partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topic_partitions:
            _write_topic_partitions(out, item.topic_partitions, version)
        out.append(b"\0")


def _read_member(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[Member], int]:
    items: list[Member] = []
    for _ in range(number):
        item = new(Member)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("Member.member_id", length, end - position)
        item.member_id = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.instance_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("Member.instance_id", length, end - position)
            item.instance_id = buffer[position:stop].decode()
            position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.rack_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("Member.rack_id", length, end - position)
            item.rack_id = buffer[position:stop].decode()
            position = stop
        item.member_epoch, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("Member.client_id", length, end - position)
        item.client_id = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("Member.client_host", length, end - position)
        item.client_host = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > end - position:
            raise bad_length("Member.subscribed_topic_names", count, end - position)
        item.subscribed_topic_names = []
        append = item.subscribed_topic_names.append
        for _ in range(count):
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("Member.subscribed_topic_names", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.subscribed_topic_regex = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("Member.subscribed_topic_regex", length, end - position)
            item.subscribed_topic_regex = buffer[position:stop].decode()
            position = stop
        (item.assignment,), position = _read_assignment(buffer, position, end, version, 1)
        (item.target_assignment,), position = _read_assignment(buffer, position, end, version, 1)
        if version >= 1:
            item.member_type, tags = _bB.unpack_from(buffer, position)
            position += 2
        else:
            tags = buffer[position]
            position += 1
            item.member_type = -1
        if tags:
            position = skip_tags(buffer, position, end, tags, "Member")
        items.append(item)
    return items, position


def _write_member(out: list[Buffer], items: Sequence[Member], version: int) -> None:
    for item in items:
        raw = item.member_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        if item.instance_id is None:
            out.append(b"\0")
        else:
            raw = item.instance_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        if item.rack_id is None:
            out.append(b"\0")
        else:
            raw = item.rack_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_i.pack(item.member_epoch))
        raw = item.client_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        raw = item.client_host.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.subscribed_topic_names) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.subscribed_topic_names:
            for text in item.subscribed_topic_names:
                raw = text.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        if item.subscribed_topic_regex is None:
            out.append(b"\0")
        else:
            raw = item.subscribed_topic_regex.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        _write_assignment(out, (item.assignment,), version)
        _write_assignment(out, (item.target_assignment,), version)
        if version >= 1:
            out.append(_bx.pack(item.member_type))
        else:
            out.append(b"\0")


def _read_described_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribedGroup], int]:
    items: list[DescribedGroup] = []
    for _ in range(number):
        item = new(DescribedGroup)
        item.error_code, length = _hB.unpack_from(buffer, position)
        position += 3
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribedGroup.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribedGroup.group_state", length, end - position)
        item.group_state = buffer[position:stop].decode()
        position = stop
        item.group_epoch, item.assignment_epoch, length = _iiB.unpack_from(buffer, position)
        position += 9
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribedGroup.assignor_name", length, end - position)
        item.assignor_name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 16:
            raise bad_length("DescribedGroup.members", count, end - position)
        item.members, position = _read_member(buffer, position, end, version, count)
        item.authorized_operations, tags = _iB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribedGroup")
        items.append(item)
    return items, position


def _write_described_group(out: list[Buffer], items: Sequence[DescribedGroup], version: int) -> None:
    for item in items:
        out.append(_h.pack(item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        raw = item.group_state.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_ii.pack(item.group_epoch, item.assignment_epoch))
        raw = item.assignor_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.members) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.members:
            _write_member(out, item.members, version)
        out.append(_ix.pack(item.authorized_operations))


def _read_consumer_group_describe_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ConsumerGroupDescribeResponse], int]:
    items: list[ConsumerGroupDescribeResponse] = []
    for _ in range(number):
        item = new(ConsumerGroupDescribeResponse)
        item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 20:
            raise bad_length("ConsumerGroupDescribeResponse.groups", count, end - position)
        item.groups, position = _read_described_group(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ConsumerGroupDescribeResponse")
        items.append(item)
    return items, position


def _write_consumer_group_describe_response(
    out: list[Buffer], items: Sequence[ConsumerGroupDescribeResponse], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.throttle_time_ms))
        length = len(item.groups) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.groups:
            _write_described_group(out, item.groups, version)
        out.append(b"\0")
