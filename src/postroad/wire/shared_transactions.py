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

from postroad.errors import ProtocolError
from postroad.wire.primitives import Buffer, unsupported
from postroad.wire.undecodable import UNDECODABLE

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


_order: Final[msgspec.msgpack.Decoder[AnyOrder]] = msgspec.msgpack.Decoder(AnyOrder)
_answer: Final = msgspec.msgpack.Decoder(SharedAnswer)
_encoder: Final = msgspec.msgpack.Encoder()


def decode_request(body: Buffer, version: int) -> AnyOrder:
    _check_version(version)
    try:
        return _order.decode(body)
    except UNDECODABLE as error:
        raise ProtocolError(f"SharedTransactions request v{version} can't be read: {error}.") from None


def encode_request(request: AnyOrder, version: int) -> bytes:
    _check_version(version)
    return _encoder.encode(request)


def decode_response(body: Buffer, version: int) -> SharedAnswer:
    _check_version(version)
    try:
        return _answer.decode(body)
    except UNDECODABLE as error:
        raise ProtocolError(f"SharedTransactions response v{version} can't be read: {error}.") from None


def encode_response(response: SharedAnswer, version: int) -> bytes:
    _check_version(version)
    return _encoder.encode(response)


def _check_version(version: int) -> None:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
