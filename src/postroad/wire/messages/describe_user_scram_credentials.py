# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeUserScramCredentials (50), versions 0 to 0."""

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
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 50
NAME: Final = "DescribeUserScramCredentials"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class UserName(Message):
    __slots__ = ("name",)
    name: str

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)
    users: list[UserName] | None

    def __init__(
        self,
        users: list[UserName] | None = None,
    ) -> None:
        self.users = users


class CredentialInfo(Message):
    __slots__ = ("mechanism", "iterations")
    mechanism: int
    iterations: int

    def __init__(
        self,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Message):
    __slots__ = ("user", "error_code", "error_message", "credential_infos")
    user: str
    error_code: int
    error_message: str | None
    credential_infos: list[CredentialInfo]

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        credential_infos: list[CredentialInfo] | None = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is None else credential_infos


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        results: list[DescribeUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> DescribeUserScramCredentialsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_user_scram_credentials_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeUserScramCredentials request", version, error) from None
    return items[0]


def encode_request(request: DescribeUserScramCredentialsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_user_scram_credentials_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeUserScramCredentials request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeUserScramCredentialsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_user_scram_credentials_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeUserScramCredentials response", version, error) from None
    return items[0]


def encode_response(response: DescribeUserScramCredentialsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_user_scram_credentials_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeUserScramCredentials response", version, error) from error
    return b"".join(out)


_biB = Struct(">biB")
_bix = Struct(">bix")
_h = Struct(">h")
_hB = Struct(">hB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")


def _read_user_name(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[UserName], int]:
    items: list[UserName] = []
    for _ in range(number):
        item = new(UserName)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("UserName.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "UserName")
        items.append(item)
    return items, position


def _write_user_name(out: list[Buffer], items: Sequence[UserName], version: int) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(b"\0")


def _read_describe_user_scram_credentials_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeUserScramCredentialsRequest], int]:
    items: list[DescribeUserScramCredentialsRequest] = []
    for _ in range(number):
        item = new(DescribeUserScramCredentialsRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.users = None
        else:
            if count < 0 or count > (end - position) // 2:
                raise bad_length("DescribeUserScramCredentialsRequest.users", count, end - position)
            item.users, position = _read_user_name(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeUserScramCredentialsRequest")
        items.append(item)
    return items, position


def _write_describe_user_scram_credentials_request(
    out: list[Buffer], items: Sequence[DescribeUserScramCredentialsRequest], version: int,
) -> None:
    for item in items:
        if item.users is None:
            out.append(b"\0")
        else:
            length = len(item.users) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.users:
                _write_user_name(out, item.users, version)
        out.append(b"\0")


def _read_credential_info(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CredentialInfo], int]:
    items: list[CredentialInfo] = []
    for _ in range(number):
        item = new(CredentialInfo)
        item.mechanism, item.iterations, tags = _biB.unpack_from(buffer, position)
        position += 6
        if tags:
            position = skip_tags(buffer, position, end, tags, "CredentialInfo")
        items.append(item)
    return items, position


def _write_credential_info(out: list[Buffer], items: Sequence[CredentialInfo], version: int) -> None:
    for item in items:
        out.append(_bix.pack(item.mechanism, item.iterations))


def _read_describe_user_scram_credentials_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeUserScramCredentialsResult], int]:
    items: list[DescribeUserScramCredentialsResult] = []
    for _ in range(number):
        item = new(DescribeUserScramCredentialsResult)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeUserScramCredentialsResult.user", length, end - position)
        item.user = buffer[position:stop].decode()
        position = stop
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
                raise bad_length("DescribeUserScramCredentialsResult.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 6:
            raise bad_length("DescribeUserScramCredentialsResult.credential_infos", count, end - position)
        item.credential_infos, position = _read_credential_info(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeUserScramCredentialsResult")
        items.append(item)
    return items, position


def _write_describe_user_scram_credentials_result(
    out: list[Buffer], items: Sequence[DescribeUserScramCredentialsResult], version: int,
) -> None:
    for item in items:
        raw = item.user.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_h.pack(item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        length = len(item.credential_infos) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.credential_infos:
            _write_credential_info(out, item.credential_infos, version)
        out.append(b"\0")


def _read_describe_user_scram_credentials_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeUserScramCredentialsResponse], int]:
    items: list[DescribeUserScramCredentialsResponse] = []
    for _ in range(number):
        item = new(DescribeUserScramCredentialsResponse)
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
                raise bad_length("DescribeUserScramCredentialsResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 6:
            raise bad_length("DescribeUserScramCredentialsResponse.results", count, end - position)
        item.results, position = _read_describe_user_scram_credentials_result(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeUserScramCredentialsResponse")
        items.append(item)
    return items, position


def _write_describe_user_scram_credentials_response(
    out: list[Buffer], items: Sequence[DescribeUserScramCredentialsResponse], version: int,
) -> None:
    for item in items:
        out.append(_ih.pack(item.throttle_time_ms, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        length = len(item.results) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.results:
            _write_describe_user_scram_credentials_result(out, item.results, version)
        out.append(b"\0")
