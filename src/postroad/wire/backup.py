"""Backup (10011), version 0: what `postroad backup create` asks nodes for.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`. All that it answers can be
had by whoever may act as a node of the cluster; passwords' verifiers and web hooks' secrets are sealed with
the master key before they are sent.

    request  := question (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults. A question of a type that the
node does not know is malformed: it ends the connection.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.wire.own_codec import OwnCodec

KEY: Final = 10_011
NAME: Final = "Backup"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

STATE: Final = "state"  # ledgers and `__consumer_offsets`
MESSAGES: Final = "messages"
VERDICTS: Final = "verdicts"  # `__transaction_state`


class BackupQuestion(msgspec.Struct, tag_field="type", frozen=True):
    """What a backup asks one node."""


class ReadStore(BackupQuestion, tag="store", frozen=True):
    """All keys of the coordination store that a new cluster would need."""


class HoldVerdicts(BackupQuestion, tag="hold", frozen=True):
    """No transaction that the node coordinates ends from now on. Answered when those that were being ended
    are; the hold ends by itself after a while."""

    hold: str  # its name, for the release
    hold_ms: int


class ReleaseVerdicts(BackupQuestion, tag="release", frozen=True):
    """Transactions may end again. `unbroken` says whether they were held all the while."""

    hold: str


class FindLogs(BackupQuestion, tag="logs", frozen=True):
    """Where the logs of this kind that the node leads begin and end now."""

    kind: str


class ReadLog(BackupQuestion, tag="read", frozen=True):
    """Committed batches of one log, from the one that holds the offset on."""

    log_id: bytes
    index: int
    offset: int
    bytes_max: int


AnyQuestion = ReadStore | HoldVerdicts | ReleaseVerdicts | FindLogs | ReadLog


class StoreKey(msgspec.Struct, frozen=True, array_like=True):
    """One key of the store; its value may be sealed (`security.sealing`)."""

    key: str
    value: bytes
    is_sealed: bool = False


class LogFacts(msgspec.Struct, frozen=True):
    """A log that a node leads: a partition's messages, or its ledger."""

    topic_id: bytes
    index: int
    is_ledger: bool
    log_id: bytes  # the topic's, or the ledger's own
    start: int
    end: int  # all below is committed
    purged: int  # tombstones and transaction markers below it may be gone
    epochs: list[tuple[int, int]]  # leader epochs and where they begin


class BackupAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer to any question: the fields that it asked for are filled."""

    error_code: int = 0
    error_message: str | None = None
    keys: list[StoreKey] = []
    logs: list[LogFacts] = []
    unbroken: bool = False
    # ReadLog
    records: bytes = b""
    start: int = 0
    cleaned: int = 0  # compaction has seen everything below it
    purged: int = 0


_request: Final[msgspec.msgpack.Decoder[AnyQuestion]] = msgspec.msgpack.Decoder(AnyQuestion)
_codec: Final = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, _request, msgspec.msgpack.Decoder(BackupAnswer))

decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
