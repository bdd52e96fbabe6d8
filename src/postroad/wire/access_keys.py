"""AccessKeys (10008), version 0: users' keys for signed requests are made, listed, disabled and deleted.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`.

    request  := order (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.wire.own_codec import OwnCodec

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


_request: Final[msgspec.msgpack.Decoder[AnyOrder]] = msgspec.msgpack.Decoder(AnyOrder)
_codec: Final = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, _request, msgspec.msgpack.Decoder(KeysAnswer))

decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
