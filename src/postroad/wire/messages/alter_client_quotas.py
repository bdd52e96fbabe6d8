# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""AlterClientQuotas (49), versions 0 to 1."""

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

KEY: Final = 49
NAME: Final = "AlterClientQuotas"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 1

new = object.__new__


class RequestEntityData(Message):
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


class OpData(Message):
    __slots__ = ("key", "value", "remove")
    key: str
    value: float
    remove: bool

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class RequestEntryData(Message):
    __slots__ = ("entity", "ops")
    entity: list[RequestEntityData]
    ops: list[OpData]

    def __init__(
        self,
        entity: list[RequestEntityData] | None = None,
        ops: list[OpData] | None = None,
    ) -> None:
        self.entity = [] if entity is None else entity
        self.ops = [] if ops is None else ops


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only")
    entries: list[RequestEntryData]
    validate_only: bool

    def __init__(
        self,
        entries: list[RequestEntryData] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is None else entries
        self.validate_only = validate_only


class ResponseEntityData(Message):
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


class ResponseEntryData(Message):
    __slots__ = ("error_code", "error_message", "entity")
    error_code: int
    error_message: str | None
    entity: list[ResponseEntityData]

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        entity: list[ResponseEntityData] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is None else entity


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries")
    throttle_time_ms: int
    entries: list[ResponseEntryData]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is None else entries


def decode_request(body: Buffer, version: int) -> AlterClientQuotasRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_client_quotas_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterClientQuotas request", version, error) from None
    return items[0]


def encode_request(request: AlterClientQuotasRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_client_quotas_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("AlterClientQuotas request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> AlterClientQuotasResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_client_quotas_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterClientQuotas response", version, error) from None
    return items[0]


def encode_response(response: AlterClientQuotasResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_client_quotas_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("AlterClientQuotas response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_dZ = Struct(">d?")
_dZx = Struct(">d?x")
_dB = Struct(">dB")
_dBB = Struct(">dBB")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")


def _read_request_entity_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[RequestEntityData], int]:
    items: list[RequestEntityData] = []
    if version >= 1:
        for _ in range(number):
            item = new(RequestEntityData)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("RequestEntityData.entity_type", length, end - position)
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
                    raise bad_length("RequestEntityData.entity_name", length, end - position)
                item.entity_name = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "RequestEntityData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(RequestEntityData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("RequestEntityData.entity_type", length, end - position)
            item.entity_type = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.entity_name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("RequestEntityData.entity_name", length, end - position)
                item.entity_name = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_request_entity_data(out: list[Buffer], items: Sequence[RequestEntityData], version: int) -> None:
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


def _read_op_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OpData], int]:
    items: list[OpData] = []
    if version >= 1:
        for _ in range(number):
            item = new(OpData)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OpData.key", length, end - position)
            item.key = buffer[position:stop].decode()
            position = stop
            item.value, remove, tags = _dBB.unpack_from(buffer, position)
            position += 10
            if remove > 1:
                raise bad_bool("OpData.remove", remove)
            item.remove = remove == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OpData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OpData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OpData.key", length, end - position)
            item.key = buffer[position:stop].decode()
            position = stop
            item.value, remove = _dB.unpack_from(buffer, position)
            position += 9
            if remove > 1:
                raise bad_bool("OpData.remove", remove)
            item.remove = remove == 1
            items.append(item)
    return items, position


def _write_op_data(out: list[Buffer], items: Sequence[OpData], version: int) -> None:
    if version >= 1:
        for item in items:
            raw = item.key.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_dZx.pack(item.value, item.remove))
    else:
        for item in items:
            raw = item.key.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_dZ.pack(item.value, item.remove))


def _read_request_entry_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[RequestEntryData], int]:
    items: list[RequestEntryData] = []
    if version >= 1:
        for _ in range(number):
            item = new(RequestEntryData)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("RequestEntryData.entity", count, end - position)
            item.entity, position = _read_request_entity_data(buffer, position, end, version, count)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 11:
                raise bad_length("RequestEntryData.ops", count, end - position)
            item.ops, position = _read_op_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "RequestEntryData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(RequestEntryData)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("RequestEntryData.entity", count, end - position)
            item.entity, position = _read_request_entity_data(buffer, position, end, version, count)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 11:
                raise bad_length("RequestEntryData.ops", count, end - position)
            item.ops, position = _read_op_data(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_request_entry_data(out: list[Buffer], items: Sequence[RequestEntryData], version: int) -> None:
    if version >= 1:
        for item in items:
            length = len(item.entity) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.entity:
                _write_request_entity_data(out, item.entity, version)
            length = len(item.ops) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.ops:
                _write_op_data(out, item.ops, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(len(item.entity)))
            if item.entity:
                _write_request_entity_data(out, item.entity, version)
            out.append(_i.pack(len(item.ops)))
            if item.ops:
                _write_op_data(out, item.ops, version)


def _read_alter_client_quotas_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterClientQuotasRequest], int]:
    items: list[AlterClientQuotasRequest] = []
    if version >= 1:
        for _ in range(number):
            item = new(AlterClientQuotasRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("AlterClientQuotasRequest.entries", count, end - position)
            item.entries, position = _read_request_entry_data(buffer, position, end, version, count)
            validate_only, tags = _BB.unpack_from(buffer, position)
            position += 2
            if validate_only > 1:
                raise bad_bool("AlterClientQuotasRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AlterClientQuotasRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AlterClientQuotasRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 8:
                raise bad_length("AlterClientQuotasRequest.entries", count, end - position)
            item.entries, position = _read_request_entry_data(buffer, position, end, version, count)
            validate_only = buffer[position]
            position += 1
            if validate_only > 1:
                raise bad_bool("AlterClientQuotasRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            items.append(item)
    return items, position


def _write_alter_client_quotas_request(
    out: list[Buffer], items: Sequence[AlterClientQuotasRequest], version: int,
) -> None:
    if version >= 1:
        for item in items:
            length = len(item.entries) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.entries:
                _write_request_entry_data(out, item.entries, version)
            out.append(_Zx.pack(item.validate_only))
    else:
        for item in items:
            out.append(_i.pack(len(item.entries)))
            if item.entries:
                _write_request_entry_data(out, item.entries, version)
            out.append(_Z.pack(item.validate_only))


def _read_response_entity_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ResponseEntityData], int]:
    items: list[ResponseEntityData] = []
    if version >= 1:
        for _ in range(number):
            item = new(ResponseEntityData)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ResponseEntityData.entity_type", length, end - position)
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
                    raise bad_length("ResponseEntityData.entity_name", length, end - position)
                item.entity_name = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ResponseEntityData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ResponseEntityData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ResponseEntityData.entity_type", length, end - position)
            item.entity_type = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.entity_name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ResponseEntityData.entity_name", length, end - position)
                item.entity_name = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_response_entity_data(out: list[Buffer], items: Sequence[ResponseEntityData], version: int) -> None:
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


def _read_response_entry_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ResponseEntryData], int]:
    items: list[ResponseEntryData] = []
    if version >= 1:
        for _ in range(number):
            item = new(ResponseEntryData)
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
                    raise bad_length("ResponseEntryData.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ResponseEntryData.entity", count, end - position)
            item.entity, position = _read_response_entity_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ResponseEntryData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ResponseEntryData)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ResponseEntryData.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("ResponseEntryData.entity", count, end - position)
            item.entity, position = _read_response_entity_data(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_response_entry_data(out: list[Buffer], items: Sequence[ResponseEntryData], version: int) -> None:
    if version >= 1:
        for item in items:
            out.append(_h.pack(item.error_code))
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            length = len(item.entity) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.entity:
                _write_response_entity_data(out, item.entity, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.entity)))
            if item.entity:
                _write_response_entity_data(out, item.entity, version)


def _read_alter_client_quotas_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterClientQuotasResponse], int]:
    items: list[AlterClientQuotasResponse] = []
    if version >= 1:
        for _ in range(number):
            item = new(AlterClientQuotasResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("AlterClientQuotasResponse.entries", count, end - position)
            item.entries, position = _read_response_entry_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AlterClientQuotasResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AlterClientQuotasResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 8:
                raise bad_length("AlterClientQuotasResponse.entries", count, end - position)
            item.entries, position = _read_response_entry_data(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_alter_client_quotas_response(
    out: list[Buffer], items: Sequence[AlterClientQuotasResponse], version: int,
) -> None:
    if version >= 1:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.entries) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.entries:
                _write_response_entry_data(out, item.entries, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.entries)))
            if item.entries:
                _write_response_entry_data(out, item.entries, version)
