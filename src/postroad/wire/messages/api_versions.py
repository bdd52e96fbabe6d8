# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ApiVersions (18), versions 0 to 4."""

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
    bad_tag_size,
    does_not_fit,
    long_uvarint,
    malformed,
    read_tag,
    skip_tags,
    tagged_field,
    unsupported,
    uvarint,
)

KEY: Final = 18
NAME: Final = "ApiVersions"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FLEXIBLE_FROM: Final = 3

new = object.__new__


class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version")
    client_software_name: str  # v3+
    client_software_version: str  # v3+

    def __init__(
        self,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(Message):
    __slots__ = ("api_key", "min_version", "max_version")
    api_key: int
    min_version: int
    max_version: int

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Message):
    __slots__ = ("name", "min_version", "max_version")
    name: str
    min_version: int
    max_version: int

    def __init__(
        self,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Message):
    __slots__ = ("name", "max_version_level", "min_version_level")
    name: str
    max_version_level: int
    min_version_level: int

    def __init__(
        self,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Message):
    __slots__ = (
        "error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch",
        "finalized_features", "zk_migration_ready",
    )
    error_code: int
    api_keys: list[ApiVersion]
    throttle_time_ms: int  # v1+
    supported_features: list[SupportedFeatureKey]  # v3+, tag 0
    finalized_features_epoch: int  # v3+, tag 1
    finalized_features: list[FinalizedFeatureKey]  # v3+, tag 2
    zk_migration_ready: bool  # v3+, tag 3

    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] | None = None,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | None = None,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | None = None,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is None else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is None else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is None else finalized_features
        self.zk_migration_ready = zk_migration_ready


def decode_request(body: Buffer, version: int) -> ApiVersionsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_api_versions_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ApiVersions request", version, error) from None
    return items[0]


def encode_request(request: ApiVersionsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_api_versions_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ApiVersions request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ApiVersionsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_api_versions_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ApiVersions response", version, error) from None
    return items[0]


def encode_response(response: ApiVersionsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_api_versions_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ApiVersions response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_h = Struct(">h")
_hB = Struct(">hB")
_hhB = Struct(">hhB")
_hhh = Struct(">hhh")
_hhhB = Struct(">hhhB")
_hhhx = Struct(">hhhx")
_hhx = Struct(">hhx")
_hi = Struct(">hi")
_i = Struct(">i")
_iB = Struct(">iB")
_q = Struct(">q")


def _read_api_versions_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ApiVersionsRequest], int]:
    items: list[ApiVersionsRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(ApiVersionsRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ApiVersionsRequest.client_software_name", length, end - position)
            item.client_software_name = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ApiVersionsRequest.client_software_version", length, end - position)
            item.client_software_version = buffer[position:stop].decode()
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ApiVersionsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ApiVersionsRequest)
            item.client_software_name = ""
            item.client_software_version = ""
            items.append(item)
    return items, position


def _write_api_versions_request(out: list[Buffer], items: Sequence[ApiVersionsRequest], version: int) -> None:
    if version >= 3:
        for item in items:
            raw = item.client_software_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.client_software_version.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            pass


def _read_api_version(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ApiVersion], int]:
    items: list[ApiVersion] = []
    if version >= 3:
        for _ in range(number):
            item = new(ApiVersion)
            item.api_key, item.min_version, item.max_version, tags = _hhhB.unpack_from(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position, end, tags, "ApiVersion")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ApiVersion)
            item.api_key, item.min_version, item.max_version = _hhh.unpack_from(buffer, position)
            position += 6
            items.append(item)
    return items, position


def _write_api_version(out: list[Buffer], items: Sequence[ApiVersion], version: int) -> None:
    if version >= 3:
        for item in items:
            out.append(_hhhx.pack(item.api_key, item.min_version, item.max_version))
    else:
        for item in items:
            out.append(_hhh.pack(item.api_key, item.min_version, item.max_version))


def _read_supported_feature_key(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SupportedFeatureKey], int]:
    items: list[SupportedFeatureKey] = []
    for _ in range(number):
        item = new(SupportedFeatureKey)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("SupportedFeatureKey.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        item.min_version, item.max_version, tags = _hhB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "SupportedFeatureKey")
        items.append(item)
    return items, position


def _write_supported_feature_key(
    out: list[Buffer], items: Sequence[SupportedFeatureKey], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_hhx.pack(item.min_version, item.max_version))


def _read_finalized_feature_key(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FinalizedFeatureKey], int]:
    items: list[FinalizedFeatureKey] = []
    for _ in range(number):
        item = new(FinalizedFeatureKey)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("FinalizedFeatureKey.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        item.max_version_level, item.min_version_level, tags = _hhB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "FinalizedFeatureKey")
        items.append(item)
    return items, position


def _write_finalized_feature_key(
    out: list[Buffer], items: Sequence[FinalizedFeatureKey], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_hhx.pack(item.max_version_level, item.min_version_level))


def _read_api_versions_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ApiVersionsResponse], int]:
    items: list[ApiVersionsResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(ApiVersionsResponse)
            item.error_code, count = _hB.unpack_from(buffer, position)
            position += 3
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("ApiVersionsResponse.api_keys", count, end - position)
            item.api_keys, position = _read_api_version(buffer, position, end, version, count)
            item.throttle_time_ms, tags = _iB.unpack_from(buffer, position)
            position += 5
            item.supported_features = []
            item.finalized_features_epoch = -1
            item.finalized_features = []
            item.zk_migration_ready = False
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "ApiVersionsResponse")
                    if tag == 0:
                        count = buffer[position]
                        position += 1
                        if count > 127:
                            count, position = long_uvarint(buffer, position, count)
                        count -= 1
                        if count < 0 or count > (end - position) // 6:
                            raise bad_length("ApiVersionsResponse.supported_features", count, end - position)
                        item.supported_features, position = _read_supported_feature_key(
                            buffer, position, end, version, count,
                        )
                    elif tag == 1:
                        (item.finalized_features_epoch,) = _q.unpack_from(buffer, position)
                        position += 8
                    elif tag == 2:
                        count = buffer[position]
                        position += 1
                        if count > 127:
                            count, position = long_uvarint(buffer, position, count)
                        count -= 1
                        if count < 0 or count > (end - position) // 6:
                            raise bad_length("ApiVersionsResponse.finalized_features", count, end - position)
                        item.finalized_features, position = _read_finalized_feature_key(
                            buffer, position, end, version, count,
                        )
                    elif tag == 3:
                        zk_migration_ready = buffer[position]
                        position += 1
                        if zk_migration_ready > 1:
                            raise bad_bool("ApiVersionsResponse.zk_migration_ready", zk_migration_ready)
                        item.zk_migration_ready = zk_migration_ready == 1
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("ApiVersionsResponse", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(ApiVersionsResponse)
            item.error_code, count = _hi.unpack_from(buffer, position)
            position += 6
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ApiVersionsResponse.api_keys", count, end - position)
            item.api_keys, position = _read_api_version(buffer, position, end, version, count)
            if version >= 1:
                (item.throttle_time_ms,) = _i.unpack_from(buffer, position)
                position += 4
            else:
                item.throttle_time_ms = 0
            item.supported_features = []
            item.finalized_features_epoch = -1
            item.finalized_features = []
            item.zk_migration_ready = False
            items.append(item)
    return items, position


def _write_api_versions_response(
    out: list[Buffer], items: Sequence[ApiVersionsResponse], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_h.pack(item.error_code))
            length = len(item.api_keys) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.api_keys:
                _write_api_version(out, item.api_keys, version)
            out.append(_i.pack(item.throttle_time_ms))
            tagged: list[Buffer] = []
            value: list[Buffer]
            if item.supported_features:
                value = []
                length = len(item.supported_features) + 1
                value.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.supported_features:
                    _write_supported_feature_key(value, item.supported_features, version)
                tagged.append(tagged_field(0, value))
            if item.finalized_features_epoch != -1:
                tagged.append(tagged_field(1, [_q.pack(item.finalized_features_epoch)]))
            if item.finalized_features:
                value = []
                length = len(item.finalized_features) + 1
                value.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.finalized_features:
                    _write_finalized_feature_key(value, item.finalized_features, version)
                tagged.append(tagged_field(2, value))
            if item.zk_migration_ready:
                tagged.append(tagged_field(3, [_Z.pack(item.zk_migration_ready)]))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            out.append(_hi.pack(item.error_code, len(item.api_keys)))
            if item.api_keys:
                _write_api_version(out, item.api_keys, version)
            if version >= 1:
                out.append(_i.pack(item.throttle_time_ms))
