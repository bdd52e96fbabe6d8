# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""AlterUserScramCredentials (51), versions 0 to 0."""

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

KEY: Final = 51
NAME: Final = "AlterUserScramCredentials"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class ScramCredentialDeletion(Message):
    __slots__ = ("name", "mechanism")
    name: str
    mechanism: int

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Message):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions")
    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] | None = None,
        upsertions: list[ScramCredentialUpsertion] | None = None,
    ) -> None:
        self.deletions = [] if deletions is None else deletions
        self.upsertions = [] if upsertions is None else upsertions


class AlterUserScramCredentialsResult(Message):
    __slots__ = ("user", "error_code", "error_message")
    user: str
    error_code: int
    error_message: str | None

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> AlterUserScramCredentialsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_user_scram_credentials_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterUserScramCredentials request", version, error) from None
    return items[0]


def encode_request(request: AlterUserScramCredentialsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_user_scram_credentials_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("AlterUserScramCredentials request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> AlterUserScramCredentialsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_user_scram_credentials_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterUserScramCredentials response", version, error) from None
    return items[0]


def encode_response(response: AlterUserScramCredentialsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_user_scram_credentials_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("AlterUserScramCredentials response", version, error) from error
    return b"".join(out)


_bB = Struct(">bB")
_bi = Struct(">bi")
_biB = Struct(">biB")
_bx = Struct(">bx")
_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")


def _read_scram_credential_deletion(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ScramCredentialDeletion], int]:
    items: list[ScramCredentialDeletion] = []
    for _ in range(number):
        item = new(ScramCredentialDeletion)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ScramCredentialDeletion.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        item.mechanism, tags = _bB.unpack_from(buffer, position)
        position += 2
        if tags:
            position = skip_tags(buffer, position, end, tags, "ScramCredentialDeletion")
        items.append(item)
    return items, position


def _write_scram_credential_deletion(
    out: list[Buffer], items: Sequence[ScramCredentialDeletion], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_bx.pack(item.mechanism))


def _read_scram_credential_upsertion(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ScramCredentialUpsertion], int]:
    items: list[ScramCredentialUpsertion] = []
    for _ in range(number):
        item = new(ScramCredentialUpsertion)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ScramCredentialUpsertion.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        item.mechanism, item.iterations, length = _biB.unpack_from(buffer, position)
        position += 6
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ScramCredentialUpsertion.salt", length, end - position)
        item.salt = buffer[position:stop]
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ScramCredentialUpsertion.salted_password", length, end - position)
        item.salted_password = buffer[position:stop]
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ScramCredentialUpsertion")
        items.append(item)
    return items, position


def _write_scram_credential_upsertion(
    out: list[Buffer], items: Sequence[ScramCredentialUpsertion], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_bi.pack(item.mechanism, item.iterations))
        raw = item.salt
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        raw = item.salted_password
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(b"\0")


def _read_alter_user_scram_credentials_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterUserScramCredentialsRequest], int]:
    items: list[AlterUserScramCredentialsRequest] = []
    for _ in range(number):
        item = new(AlterUserScramCredentialsRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("AlterUserScramCredentialsRequest.deletions", count, end - position)
        item.deletions, position = _read_scram_credential_deletion(buffer, position, end, version, count)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 9:
            raise bad_length("AlterUserScramCredentialsRequest.upsertions", count, end - position)
        item.upsertions, position = _read_scram_credential_upsertion(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterUserScramCredentialsRequest")
        items.append(item)
    return items, position


def _write_alter_user_scram_credentials_request(
    out: list[Buffer], items: Sequence[AlterUserScramCredentialsRequest], version: int,
) -> None:
    for item in items:
        length = len(item.deletions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.deletions:
            _write_scram_credential_deletion(out, item.deletions, version)
        length = len(item.upsertions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.upsertions:
            _write_scram_credential_upsertion(out, item.upsertions, version)
        out.append(b"\0")


def _read_alter_user_scram_credentials_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterUserScramCredentialsResult], int]:
    items: list[AlterUserScramCredentialsResult] = []
    for _ in range(number):
        item = new(AlterUserScramCredentialsResult)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("AlterUserScramCredentialsResult.user", length, end - position)
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
                raise bad_length("AlterUserScramCredentialsResult.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterUserScramCredentialsResult")
        items.append(item)
    return items, position


def _write_alter_user_scram_credentials_result(
    out: list[Buffer], items: Sequence[AlterUserScramCredentialsResult], version: int,
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
        out.append(b"\0")


def _read_alter_user_scram_credentials_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterUserScramCredentialsResponse], int]:
    items: list[AlterUserScramCredentialsResponse] = []
    for _ in range(number):
        item = new(AlterUserScramCredentialsResponse)
        item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 5:
            raise bad_length("AlterUserScramCredentialsResponse.results", count, end - position)
        item.results, position = _read_alter_user_scram_credentials_result(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterUserScramCredentialsResponse")
        items.append(item)
    return items, position


def _write_alter_user_scram_credentials_response(
    out: list[Buffer], items: Sequence[AlterUserScramCredentialsResponse], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.throttle_time_ms))
        length = len(item.results) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.results:
            _write_alter_user_scram_credentials_result(out, item.results, version)
        out.append(b"\0")
