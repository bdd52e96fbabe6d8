# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""IncrementalAlterConfigs (44), versions 0 to 1."""

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

KEY: Final = 44
NAME: Final = "IncrementalAlterConfigs"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 1

new = object.__new__


class AlterableConfig(Message):
    __slots__ = ("name", "config_operation", "value")
    name: str
    config_operation: int
    value: str | None

    def __init__(
        self,
        name: str = "",
        config_operation: int = 0,
        value: str | None = None,
    ) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value


class AlterConfigsResource(Message):
    __slots__ = ("resource_type", "resource_name", "configs")
    resource_type: int
    resource_name: str
    configs: list[AlterableConfig]

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is None else configs


class IncrementalAlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only")
    resources: list[AlterConfigsResource]
    validate_only: bool

    def __init__(
        self,
        resources: list[AlterConfigsResource] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is None else resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class IncrementalAlterConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")
    throttle_time_ms: int
    responses: list[AlterConfigsResourceResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is None else responses


def decode_request(body: Buffer, version: int) -> IncrementalAlterConfigsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_incremental_alter_configs_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("IncrementalAlterConfigs request", version, error) from None
    return items[0]


def encode_request(request: IncrementalAlterConfigsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_incremental_alter_configs_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("IncrementalAlterConfigs request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> IncrementalAlterConfigsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_incremental_alter_configs_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("IncrementalAlterConfigs response", version, error) from None
    return items[0]


def encode_response(response: IncrementalAlterConfigsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_incremental_alter_configs_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("IncrementalAlterConfigs response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_b = Struct(">b")
_bB = Struct(">bB")
_bh = Struct(">bh")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")


def _read_alterable_config(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterableConfig], int]:
    items: list[AlterableConfig] = []
    if version >= 1:
        for _ in range(number):
            item = new(AlterableConfig)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterableConfig.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.config_operation, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("AlterableConfig.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AlterableConfig")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AlterableConfig)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterableConfig.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.config_operation, length = _bh.unpack_from(buffer, position)
            position += 3
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("AlterableConfig.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_alterable_config(out: list[Buffer], items: Sequence[AlterableConfig], version: int) -> None:
    if version >= 1:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_b.pack(item.config_operation))
            if item.value is None:
                out.append(b"\0")
            else:
                raw = item.value.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.value is None else item.value.encode()
            out.append(_bh.pack(item.config_operation, -1 if item.value is None else len(raw)))
            out.append(raw)


def _read_alter_configs_resource(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterConfigsResource], int]:
    items: list[AlterConfigsResource] = []
    if version >= 1:
        for _ in range(number):
            item = new(AlterConfigsResource)
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterConfigsResource.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("AlterConfigsResource.configs", count, end - position)
            item.configs, position = _read_alterable_config(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AlterConfigsResource")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AlterConfigsResource)
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterConfigsResource.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 5:
                raise bad_length("AlterConfigsResource.configs", count, end - position)
            item.configs, position = _read_alterable_config(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_alter_configs_resource(
    out: list[Buffer], items: Sequence[AlterConfigsResource], version: int,
) -> None:
    if version >= 1:
        for item in items:
            out.append(_b.pack(item.resource_type))
            raw = item.resource_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.configs) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.configs:
                _write_alterable_config(out, item.configs, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.configs)))
            if item.configs:
                _write_alterable_config(out, item.configs, version)


def _read_incremental_alter_configs_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[IncrementalAlterConfigsRequest], int]:
    items: list[IncrementalAlterConfigsRequest] = []
    if version >= 1:
        for _ in range(number):
            item = new(IncrementalAlterConfigsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("IncrementalAlterConfigsRequest.resources", count, end - position)
            item.resources, position = _read_alter_configs_resource(buffer, position, end, version, count)
            validate_only, tags = _BB.unpack_from(buffer, position)
            position += 2
            if validate_only > 1:
                raise bad_bool("IncrementalAlterConfigsRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "IncrementalAlterConfigsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(IncrementalAlterConfigsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 7:
                raise bad_length("IncrementalAlterConfigsRequest.resources", count, end - position)
            item.resources, position = _read_alter_configs_resource(buffer, position, end, version, count)
            validate_only = buffer[position]
            position += 1
            if validate_only > 1:
                raise bad_bool("IncrementalAlterConfigsRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            items.append(item)
    return items, position


def _write_incremental_alter_configs_request(
    out: list[Buffer], items: Sequence[IncrementalAlterConfigsRequest], version: int,
) -> None:
    if version >= 1:
        for item in items:
            length = len(item.resources) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.resources:
                _write_alter_configs_resource(out, item.resources, version)
            out.append(_Zx.pack(item.validate_only))
    else:
        for item in items:
            out.append(_i.pack(len(item.resources)))
            if item.resources:
                _write_alter_configs_resource(out, item.resources, version)
            out.append(_Z.pack(item.validate_only))


def _read_alter_configs_resource_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterConfigsResourceResponse], int]:
    items: list[AlterConfigsResourceResponse] = []
    if version >= 1:
        for _ in range(number):
            item = new(AlterConfigsResourceResponse)
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
                    raise bad_length("AlterConfigsResourceResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterConfigsResourceResponse.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AlterConfigsResourceResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AlterConfigsResourceResponse)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("AlterConfigsResourceResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterConfigsResourceResponse.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            items.append(item)
    return items, position


def _write_alter_configs_resource_response(
    out: list[Buffer], items: Sequence[AlterConfigsResourceResponse], version: int,
) -> None:
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
            out.append(_b.pack(item.resource_type))
            raw = item.resource_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)


def _read_incremental_alter_configs_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[IncrementalAlterConfigsResponse], int]:
    items: list[IncrementalAlterConfigsResponse] = []
    if version >= 1:
        for _ in range(number):
            item = new(IncrementalAlterConfigsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 6:
                raise bad_length("IncrementalAlterConfigsResponse.responses", count, end - position)
            item.responses, position = _read_alter_configs_resource_response(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "IncrementalAlterConfigsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(IncrementalAlterConfigsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 7:
                raise bad_length("IncrementalAlterConfigsResponse.responses", count, end - position)
            item.responses, position = _read_alter_configs_resource_response(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_incremental_alter_configs_response(
    out: list[Buffer], items: Sequence[IncrementalAlterConfigsResponse], version: int,
) -> None:
    if version >= 1:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.responses) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.responses:
                _write_alter_configs_resource_response(out, item.responses, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.responses)))
            if item.responses:
                _write_alter_configs_resource_response(out, item.responses, version)
