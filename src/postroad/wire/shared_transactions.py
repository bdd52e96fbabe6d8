"""SharedTransactions (10010), version 0: several producers write in one transaction.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`. The transactional id's
coordinator takes it (`transactions.shared` says what holds).

    request  := order (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.wire.own_codec import OwnCodec

KEY: Final = 10_010
NAME: Final = "SharedTransactions"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0


class SharedOrder(msgspec.Struct, tag_field="type", frozen=True):
    """A run of a batch: one try to write it."""

    transactional_id: str
    run: str
    batch: int


class Enter(SharedOrder, tag="enter", frozen=True):
    """Answered with a producer of the run's transaction, or with `is_done`."""

    timeout_ms: int


class Finish(SharedOrder, tag="finish", frozen=True):
    """The run's transaction commits with what these producers (id and epoch) wrote; without a list it aborts.

    Answered when the verdict is committed."""

    kept: list[tuple[int, int]] | None = None


AnyOrder = Enter | Finish


class SharedAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    error_code: int = 0
    error_message: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    is_done: bool = False  # the batch was committed: nobody is to write it


_request: Final[msgspec.msgpack.Decoder[AnyOrder]] = msgspec.msgpack.Decoder(AnyOrder)
_codec: Final = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, _request, msgspec.msgpack.Decoder(SharedAnswer))

decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
