# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeConfigs (32), versions 1 to 4."""

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

KEY: Final = 32
NAME: Final = "DescribeConfigs"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 4
FLEXIBLE_FROM: Final = 4

new = object.__new__


class DescribeConfigsResource(Message):
    __slots__ = ("resource_type", "resource_name", "configuration_keys")
    resource_type: int
    resource_name: str
    configuration_keys: list[str] | None

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = configuration_keys


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation")
    resources: list[DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool  # v3+

    def __init__(
        self,
        resources: list[DescribeConfigsResource] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is None else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(Message):
    __slots__ = ("name", "value", "source")
    name: str
    value: str | None
    source: int

    def __init__(
        self,
        name: str = "",
        value: str | None = None,
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Message):
    __slots__ = (
        "name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type",
        "documentation",
    )
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: int  # v3+
    documentation: str | None  # v3+

    def __init__(
        self,
        name: str = "",
        value: str | None = None,
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | None = None,
        config_type: int = 0,
        documentation: str | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is None else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: list[DescribeConfigsResourceResult]

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is None else configs


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    throttle_time_ms: int
    results: list[DescribeConfigsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> DescribeConfigsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_configs_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeConfigs request", version, error) from None
    return items[0]


def encode_request(request: DescribeConfigsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_configs_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeConfigs request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeConfigsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_configs_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeConfigs response", version, error) from None
    return items[0]


def encode_response(response: DescribeConfigsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_configs_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeConfigs response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_ZZ = Struct(">??")
_ZZx = Struct(">??x")
_ZbZ = Struct(">?b?")
_ZbZi = Struct(">?b?i")
_BB = Struct(">BB")
_BBB = Struct(">BBB")
_BbBB = Struct(">BbBB")
_BbBi = Struct(">BbBi")
_b = Struct(">b")
_bB = Struct(">bB")
_bh = Struct(">bh")
_bx = Struct(">bx")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")


def _read_describe_configs_resource(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeConfigsResource], int]:
    items: list[DescribeConfigsResource] = []
    if version >= 4:
        for _ in range(number):
            item = new(DescribeConfigsResource)
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsResource.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.configuration_keys = None
            else:
                if count < 0 or count > end - position:
                    raise bad_length("DescribeConfigsResource.configuration_keys", count, end - position)
                item.configuration_keys = []
                append = item.configuration_keys.append
                for _ in range(count):
                    length = buffer[position]
                    position += 1
                    if length > 127:
                        length, position = long_uvarint(buffer, position, length)
                    length -= 1
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("DescribeConfigsResource.configuration_keys", length, end - position)
                    append(buffer[position:stop].decode())
                    position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeConfigsResource")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeConfigsResource)
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsResource.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count == -1:
                item.configuration_keys = None
            else:
                if count < 0 or count > (end - position) // 2:
                    raise bad_length("DescribeConfigsResource.configuration_keys", count, end - position)
                item.configuration_keys = []
                append = item.configuration_keys.append
                for _ in range(count):
                    (length,) = _h.unpack_from(buffer, position)
                    position += 2
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("DescribeConfigsResource.configuration_keys", length, end - position)
                    append(buffer[position:stop].decode())
                    position = stop
            items.append(item)
    return items, position


def _write_describe_configs_resource(
    out: list[Buffer], items: Sequence[DescribeConfigsResource], version: int,
) -> None:
    if version >= 4:
        for item in items:
            out.append(_b.pack(item.resource_type))
            raw = item.resource_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.configuration_keys is None:
                out.append(b"\0")
            else:
                length = len(item.configuration_keys) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.configuration_keys:
                    for text in item.configuration_keys:
                        raw = text.encode()
                        length = len(raw) + 1
                        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                        out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)
            out.append(_i.pack(-1 if item.configuration_keys is None else len(item.configuration_keys)))
            if item.configuration_keys:
                for text in item.configuration_keys:
                    raw = text.encode()
                    out.append(_h.pack(len(raw)))
                    out.append(raw)


def _read_describe_configs_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeConfigsRequest], int]:
    items: list[DescribeConfigsRequest] = []
    if version >= 4:
        for _ in range(number):
            item = new(DescribeConfigsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DescribeConfigsRequest.resources", count, end - position)
            item.resources, position = _read_describe_configs_resource(buffer, position, end, version, count)
            include_synonyms, include_documentation, tags = _BBB.unpack_from(buffer, position)
            position += 3
            if include_synonyms > 1:
                raise bad_bool("DescribeConfigsRequest.include_synonyms", include_synonyms)
            item.include_synonyms = include_synonyms == 1
            if include_documentation > 1:
                raise bad_bool("DescribeConfigsRequest.include_documentation", include_documentation)
            item.include_documentation = include_documentation == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeConfigsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeConfigsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 7:
                raise bad_length("DescribeConfigsRequest.resources", count, end - position)
            item.resources, position = _read_describe_configs_resource(buffer, position, end, version, count)
            if version >= 3:
                include_synonyms, include_documentation = _BB.unpack_from(buffer, position)
                position += 2
                if include_synonyms > 1:
                    raise bad_bool("DescribeConfigsRequest.include_synonyms", include_synonyms)
                item.include_synonyms = include_synonyms == 1
                if include_documentation > 1:
                    raise bad_bool("DescribeConfigsRequest.include_documentation", include_documentation)
                item.include_documentation = include_documentation == 1
            else:
                include_synonyms = buffer[position]
                position += 1
                if include_synonyms > 1:
                    raise bad_bool("DescribeConfigsRequest.include_synonyms", include_synonyms)
                item.include_synonyms = include_synonyms == 1
                item.include_documentation = False
            items.append(item)
    return items, position


def _write_describe_configs_request(
    out: list[Buffer], items: Sequence[DescribeConfigsRequest], version: int,
) -> None:
    if version >= 4:
        for item in items:
            length = len(item.resources) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.resources:
                _write_describe_configs_resource(out, item.resources, version)
            out.append(_ZZx.pack(item.include_synonyms, item.include_documentation))
    else:
        for item in items:
            out.append(_i.pack(len(item.resources)))
            if item.resources:
                _write_describe_configs_resource(out, item.resources, version)
            if version >= 3:
                out.append(_ZZ.pack(item.include_synonyms, item.include_documentation))
            else:
                out.append(_Z.pack(item.include_synonyms))


def _read_describe_configs_synonym(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeConfigsSynonym], int]:
    items: list[DescribeConfigsSynonym] = []
    if version >= 4:
        for _ in range(number):
            item = new(DescribeConfigsSynonym)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsSynonym.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeConfigsSynonym.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            item.source, tags = _bB.unpack_from(buffer, position)
            position += 2
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeConfigsSynonym")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeConfigsSynonym)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsSynonym.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeConfigsSynonym.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            (item.source,) = _b.unpack_from(buffer, position)
            position += 1
            items.append(item)
    return items, position


def _write_describe_configs_synonym(
    out: list[Buffer], items: Sequence[DescribeConfigsSynonym], version: int,
) -> None:
    if version >= 4:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.value is None:
                out.append(b"\0")
            else:
                raw = item.value.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_bx.pack(item.source))
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.value is None else item.value.encode()
            out.append(_h.pack(-1 if item.value is None else len(raw)))
            out.append(raw)
            out.append(_b.pack(item.source))


def _read_describe_configs_resource_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeConfigsResourceResult], int]:
    items: list[DescribeConfigsResourceResult] = []
    if version >= 4:
        for _ in range(number):
            item = new(DescribeConfigsResourceResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsResourceResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeConfigsResourceResult.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            read_only, item.config_source, is_sensitive, count = _BbBB.unpack_from(buffer, position)
            position += 4
            if read_only > 1:
                raise bad_bool("DescribeConfigsResourceResult.read_only", read_only)
            item.read_only = read_only == 1
            if is_sensitive > 1:
                raise bad_bool("DescribeConfigsResourceResult.is_sensitive", is_sensitive)
            item.is_sensitive = is_sensitive == 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DescribeConfigsResourceResult.synonyms", count, end - position)
            item.synonyms, position = _read_describe_configs_synonym(buffer, position, end, version, count)
            item.config_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.documentation = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeConfigsResourceResult.documentation", length, end - position)
                item.documentation = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeConfigsResourceResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeConfigsResourceResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsResourceResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeConfigsResourceResult.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            read_only, item.config_source, is_sensitive, count = _BbBi.unpack_from(buffer, position)
            position += 7
            if read_only > 1:
                raise bad_bool("DescribeConfigsResourceResult.read_only", read_only)
            item.read_only = read_only == 1
            if is_sensitive > 1:
                raise bad_bool("DescribeConfigsResourceResult.is_sensitive", is_sensitive)
            item.is_sensitive = is_sensitive == 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("DescribeConfigsResourceResult.synonyms", count, end - position)
            item.synonyms, position = _read_describe_configs_synonym(buffer, position, end, version, count)
            if version >= 3:
                item.config_type, length = _bh.unpack_from(buffer, position)
                position += 3
            else:
                item.config_type = 0
            if version >= 3:
                if length == -1:
                    item.documentation = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length(
                            "DescribeConfigsResourceResult.documentation", length, end - position,
                        )
                    item.documentation = buffer[position:stop].decode()
                    position = stop
            else:
                item.documentation = None
            items.append(item)
    return items, position


def _write_describe_configs_resource_result(
    out: list[Buffer], items: Sequence[DescribeConfigsResourceResult], version: int,
) -> None:
    if version >= 4:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.value is None:
                out.append(b"\0")
            else:
                raw = item.value.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_ZbZ.pack(item.read_only, item.config_source, item.is_sensitive))
            length = len(item.synonyms) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.synonyms:
                _write_describe_configs_synonym(out, item.synonyms, version)
            out.append(_b.pack(item.config_type))
            if item.documentation is None:
                out.append(b"\0")
            else:
                raw = item.documentation.encode()
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
            out.append(_h.pack(-1 if item.value is None else len(raw)))
            out.append(raw)
            out.append(_ZbZi.pack(item.read_only, item.config_source, item.is_sensitive, len(item.synonyms)))
            if item.synonyms:
                _write_describe_configs_synonym(out, item.synonyms, version)
            if version >= 3:
                out.append(_b.pack(item.config_type))
            if version >= 3:
                raw = b"" if item.documentation is None else item.documentation.encode()
                out.append(_h.pack(-1 if item.documentation is None else len(raw)))
                out.append(raw)


def _read_describe_configs_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeConfigsResult], int]:
    items: list[DescribeConfigsResult] = []
    if version >= 4:
        for _ in range(number):
            item = new(DescribeConfigsResult)
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
                    raise bad_length("DescribeConfigsResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsResult.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 9:
                raise bad_length("DescribeConfigsResult.configs", count, end - position)
            item.configs, position = _read_describe_configs_resource_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeConfigsResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeConfigsResult)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeConfigsResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeConfigsResult.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 11:
                raise bad_length("DescribeConfigsResult.configs", count, end - position)
            item.configs, position = _read_describe_configs_resource_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_describe_configs_result(
    out: list[Buffer], items: Sequence[DescribeConfigsResult], version: int,
) -> None:
    if version >= 4:
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
            length = len(item.configs) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.configs:
                _write_describe_configs_resource_result(out, item.configs, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.configs)))
            if item.configs:
                _write_describe_configs_resource_result(out, item.configs, version)


def _read_describe_configs_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeConfigsResponse], int]:
    items: list[DescribeConfigsResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(DescribeConfigsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("DescribeConfigsResponse.results", count, end - position)
            item.results, position = _read_describe_configs_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeConfigsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeConfigsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 11:
                raise bad_length("DescribeConfigsResponse.results", count, end - position)
            item.results, position = _read_describe_configs_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_describe_configs_response(
    out: list[Buffer], items: Sequence[DescribeConfigsResponse], version: int,
) -> None:
    if version >= 4:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.results:
                _write_describe_configs_result(out, item.results, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.results)))
            if item.results:
                _write_describe_configs_result(out, item.results, version)
