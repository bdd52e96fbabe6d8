"""AccessKeys (10008), version 0: users' keys for signed requests are made, listed, disabled and deleted.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`.

    request  := order (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.errors import ProtocolError
from postroad.wire.primitives import Buffer, unsupported
from postroad.wire.undecodable import UNDECODABLE

KEY: Final = 10_008
NAME: Final = "AccessKeys"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0


class KeysOrder(msgspec.Struct, tag_field="type", frozen=True):
    """What an administrator asks for."""


class ListKeys(KeysOrder, tag="list", frozen=True):
    """All keys; of one user if one is named."""

    user: str | None = None


class CreateKey(KeysOrder, tag="create", frozen=True):
    """Answered with the key and its secret, which is told this once."""

    user: str


class EnableKey(KeysOrder, tag="enable", frozen=True):
    """Requests that are signed with the key count, or don't."""

    id: str
    enabled: bool


class DeleteKey(KeysOrder, tag="delete", frozen=True):
    """The key is gone for good."""

    id: str


AnyOrder = ListKeys | CreateKey | EnableKey | DeleteKey


class AccessKey(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    user: str
    enabled: bool = True
    created_ms: int = 0
    secret: str = ""  # of one that was just made


class KeysAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """`keys`: those that were listed, or the one that was made."""

    error_code: int = 0
    error_message: str | None = None
    keys: list[AccessKey] = []


_order: Final[msgspec.msgpack.Decoder[AnyOrder]] = msgspec.msgpack.Decoder(AnyOrder)
_answer: Final = msgspec.msgpack.Decoder(KeysAnswer)
_encoder: Final = msgspec.msgpack.Encoder()


def decode_request(body: Buffer, version: int) -> AnyOrder:
    _check_version(version)
    try:
        return _order.decode(body)
    except UNDECODABLE as error:
        raise ProtocolError(f"AccessKeys request v{version} can't be read: {error}.") from None


def encode_request(request: AnyOrder, version: int) -> bytes:
    _check_version(version)
    return _encoder.encode(request)


def decode_response(body: Buffer, version: int) -> KeysAnswer:
    _check_version(version)
    try:
        return _answer.decode(body)
    except UNDECODABLE as error:
        raise ProtocolError(f"AccessKeys response v{version} can't be read: {error}.") from None


def encode_response(response: KeysAnswer, version: int) -> bytes:
    _check_version(version)
    return _encoder.encode(response)


def _check_version(version: int) -> None:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
