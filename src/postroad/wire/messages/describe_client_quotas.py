# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeClientQuotas (48), versions 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    SHORT_UVARINTS,
    UNREADABLE,
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

KEY: Final = 48
NAME: Final = "DescribeClientQuotas"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 1

new = object.__new__


class ComponentData(Message):
    __slots__ = ("entity_type", "match_type", "match")
    entity_type: str
    match_type: int
    match: str | None

    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = None,
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict")
    components: list[ComponentData]
    strict: bool

    def __init__(
        self,
        components: list[ComponentData] | None = None,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is None else components
        self.strict = strict


class EntityData(Message):
    __slots__ = ("entity_type", "entity_name")
    entity_type: str
    entity_name: str | None

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = None,
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(Message):
    __slots__ = ("key", "value")
    key: str
    value: float

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value


class EntryData(Message):
    __slots__ = ("entity", "values")
    entity: list[EntityData]
    values: list[ValueData]

    def __init__(
        self,
        entity: list[EntityData] | None = None,
        values: list[ValueData] | None = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.values = [] if values is None else values


class DescribeClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[EntryData] | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        entries: list[EntryData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = entries


def decode_request(body: Buffer, version: int) -> DescribeClientQuotasRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_client_quotas_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeClientQuotas request", version, error) from None
    return items[0]


def encode_request(request: DescribeClientQuotasRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_client_quotas_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeClientQuotas request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeClientQuotasResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_client_quotas_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeClientQuotas response", version, error) from None
    return items[0]


def encode_response(response: DescribeClientQuotasResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_client_quotas_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeClientQuotas response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_b = Struct(">b")
_bB = Struct(">bB")
_bh = Struct(">bh")
_d = Struct(">d")
_dB = Struct(">dB")
_dx = Struct(">dx")
_h = Struct(">h")
_i = Struct(">i")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihh = Struct(">ihh")


def _read_component_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ComponentData], int]:
    items: list[ComponentData] = []
    if version >= 1:
        for _ in range(number):
            item = new(ComponentData)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ComponentData.entity_type", length, end - position)
            item.entity_type = buffer[position:stop].decode()
            position = stop
            item.match_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.match = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ComponentData.match", length, end - position)
                item.match = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ComponentData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ComponentData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ComponentData.entity_type", length, end - position)
            item.entity_type = buffer[position:stop].decode()
            position = stop
            item.match_type, length = _bh.unpack_from(buffer, position)
            position += 3
            if length == -1:
                item.match = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ComponentData.match", length, end - position)
                item.match = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_component_data(out: list[Buffer], items: Sequence[ComponentData], version: int) -> None:
    if version >= 1:
        for item in items:
            raw = item.entity_type.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_b.pack(item.match_type))
            if item.match is None:
                out.append(b"\0")
            else:
                raw = item.match.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.entity_type.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.match is None else item.match.encode()
            out.append(_bh.pack(item.match_type, -1 if item.match is None else len(raw)))
            out.append(raw)


def _read_describe_client_quotas_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeClientQuotasRequest], int]:
    items: list[DescribeClientQuotasRequest] = []
    if version >= 1:
        for _ in range(number):
            item = new(DescribeClientQuotasRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DescribeClientQuotasRequest.components", count, end - position)
            item.components, position = _read_component_data(buffer, position, end, version, count)
            strict, tags = _BB.unpack_from(buffer, position)
            position += 2
            if strict > 1:
                raise bad_bool("DescribeClientQuotasRequest.strict", strict)
            item.strict = strict == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeClientQuotasRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeClientQuotasRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 5:
                raise bad_length("DescribeClientQuotasRequest.components", count, end - position)
            item.components, position = _read_component_data(buffer, position, end, version, count)
            strict = buffer[position]
            position += 1
            if strict > 1:
                raise bad_bool("DescribeClientQuotasRequest.strict", strict)
            item.strict = strict == 1
            items.append(item)
    return items, position


def _write_describe_client_quotas_request(
    out: list[Buffer], items: Sequence[DescribeClientQuotasRequest], version: int,
) -> None:
    if version >= 1:
        for item in items:
            length = len(item.components) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.components:
                _write_component_data(out, item.components, version)
            out.append(_Zx.pack(item.strict))
    else:
        for item in items:
            out.append(_i.pack(len(item.components)))
            if item.components:
                _write_component_data(out, item.components, version)
            out.append(_Z.pack(item.strict))


def _read_entity_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[EntityData], int]:
    items: list[EntityData] = []
    if version >= 1:
        for _ in range(number):
            item = new(EntityData)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("EntityData.entity_type", length, end - position)
            item.entity_type = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.entity_name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("EntityData.entity_name", length, end - position)
                item.entity_name = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "EntityData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(EntityData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("EntityData.entity_type", length, end - position)
            item.entity_type = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.entity_name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("EntityData.entity_name", length, end - position)
                item.entity_name = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_entity_data(out: list[Buffer], items: Sequence[EntityData], version: int) -> None:
    if version >= 1:
        for item in items:
            raw = item.entity_type.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.entity_name is None:
                out.append(b"\0")
            else:
                raw = item.entity_name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.entity_type.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.entity_name is None else item.entity_name.encode()
            out.append(_h.pack(-1 if item.entity_name is None else len(raw)))
            out.append(raw)


def _read_value_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ValueData], int]:
    items: list[ValueData] = []
    if version >= 1:
        for _ in range(number):
            item = new(ValueData)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ValueData.key", length, end - position)
            item.key = buffer[position:stop].decode()
            position = stop
            item.value, tags = _dB.unpack_from(buffer, position)
            position += 9
            if tags:
                position = skip_tags(buffer, position, end, tags, "ValueData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ValueData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ValueData.key", length, end - position)
            item.key = buffer[position:stop].decode()
            position = stop
            (item.value,) = _d.unpack_from(buffer, position)
            position += 8
            items.append(item)
    return items, position


def _write_value_data(out: list[Buffer], items: Sequence[ValueData], version: int) -> None:
    if version >= 1:
        for item in items:
            raw = item.key.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_dx.pack(item.value))
    else:
        for item in items:
            raw = item.key.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_d.pack(item.value))


def _read_entry_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[EntryData], int]:
    items: list[EntryData] = []
    if version >= 1:
        for _ in range(number):
            item = new(EntryData)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("EntryData.entity", count, end - position)
            item.entity, position = _read_entity_data(buffer, position, end, version, count)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 10:
                raise bad_length("EntryData.values", count, end - position)
            item.values, position = _read_value_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "EntryData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(EntryData)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("EntryData.entity", count, end - position)
            item.entity, position = _read_entity_data(buffer, position, end, version, count)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 10:
                raise bad_length("EntryData.values", count, end - position)
            item.values, position = _read_value_data(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_entry_data(out: list[Buffer], items: Sequence[EntryData], version: int) -> None:
    if version >= 1:
        for item in items:
            length = len(item.entity) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.entity:
                _write_entity_data(out, item.entity, version)
            length = len(item.values) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.values:
                _write_value_data(out, item.values, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(len(item.entity)))
            if item.entity:
                _write_entity_data(out, item.entity, version)
            out.append(_i.pack(len(item.values)))
            if item.values:
                _write_value_data(out, item.values, version)


def _read_describe_client_quotas_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeClientQuotasResponse], int]:
    items: list[DescribeClientQuotasResponse] = []
    if version >= 1:
        for _ in range(number):
            item = new(DescribeClientQuotasResponse)
            item.throttle_time_ms, item.error_code, length = _ihB.unpack_from(buffer, position)
            position += 7
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeClientQuotasResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.entries = None
            else:
                if count < 0 or count > (end - position) // 3:
                    raise bad_length("DescribeClientQuotasResponse.entries", count, end - position)
                item.entries, position = _read_entry_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeClientQuotasResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeClientQuotasResponse)
            item.throttle_time_ms, item.error_code, length = _ihh.unpack_from(buffer, position)
            position += 8
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeClientQuotasResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count == -1:
                item.entries = None
            else:
                if count < 0 or count > (end - position) // 8:
                    raise bad_length("DescribeClientQuotasResponse.entries", count, end - position)
                item.entries, position = _read_entry_data(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_describe_client_quotas_response(
    out: list[Buffer], items: Sequence[DescribeClientQuotasResponse], version: int,
) -> None:
    if version >= 1:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if item.entries is None:
                out.append(b"\0")
            else:
                length = len(item.entries) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.entries:
                    _write_entry_data(out, item.entries, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(
                _ihh.pack(
                    item.throttle_time_ms, item.error_code, -1 if item.error_message is None else len(raw),
                )
            )
            out.append(raw)
            out.append(_i.pack(-1 if item.entries is None else len(item.entries)))
            if item.entries:
                _write_entry_data(out, item.entries, version)
