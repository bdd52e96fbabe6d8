"""`Update`: what changes in the hard state of one share partition, as a record of the partition's ledger.

    key    ["queue", group, topic id (hex), partition]
    value  Update as JSON; null: the state is gone (the group or the topic was deleted)

Updates of one turn are appended as one batch, which is there whole or not at all after a crash. Applying
them in the log's order rebuilds the ledger. They only ever add (S4, S6), so an update that is applied twice,
or a snapshot that comes after updates it does not know of, changes nothing that was true. A seek is the
exception: it begins a new generation, and whatever speaks of an older one is passed over. So does a log that
has lost its end: its next messages take offsets that were spoken of before.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec


class Reason(StrEnum):
    """Why a message was archived."""

    ATTEMPTS = "attempts"  # it was delivered as often as it may be
    REJECTED = "rejected"  # a consumer said that it will never do
    EXPIRED = "expired"  # its time was over before it was delivered
    INVALID = "invalid"  # it asks for a time that can't be read


class Released(NamedTuple):
    """Delivered, not settled, and available again: how often it was delivered, and when (wall clock)."""

    first: int
    last: int
    deliveries: int
    first_ms: int
    last_ms: int


class Dying(NamedTuple):
    """Archived, but its copy among the dead letters is not known to be safe. Never delivered again."""

    first: int
    last: int
    reason: Reason
    deliveries: int
    first_ms: int  # 0: it was never delivered
    last_ms: int
    text: str = ""  # why it was rejected, in the consumer's words


class Pledged(NamedTuple):
    """Accepted in a transaction that has not ended: neither held nor available until it does."""

    first: int
    last: int
    producer_id: int
    epoch: int


class Ended(NamedTuple):
    """The producer's transactions of lower epochs have ended. What was pledged in them and is not done, or
    dying, by the same update is released."""

    producer_id: int
    epoch: int


class Update(msgspec.Struct, frozen=True, omit_defaults=True):
    generation: int = 0
    start: int | None = None  # a new generation begins here; in a snapshot: everything below is done
    done: list[tuple[int, int]] = []  # acknowledged, archived, or not there at all
    released: list[Released] = []
    dying: list[Dying] = []
    end: int | None = None  # a new generation begins with what the one before knew below this offset
    pledged: list[Pledged] = []
    ended: list[Ended] = []

    @property
    def begins(self) -> bool:
        """Whether a generation can begin with it."""
        return self.start is not None or self.end is not None

    def below(self, end: int) -> Update:
        """What it says of offsets below this one."""
        return Update(
            self.generation,
            None if self.start is None else min(self.start, end),
            [(first, min(last, end - 1)) for first, last in self.done if first < end],
            [each._replace(last=min(each.last, end - 1)) for each in self.released if each.first < end],
            [each._replace(last=min(each.last, end - 1)) for each in self.dying if each.first < end],
            None if self.end is None else min(self.end, end),
            [each._replace(last=min(each.last, end - 1)) for each in self.pledged if each.first < end],
            self.ended,
        )


class Key(NamedTuple):
    """Whose state a record tells."""

    group: str
    topic_id: bytes
    partition: int


_encode = msgspec.json.Encoder().encode
_decode_key = msgspec.json.Decoder(tuple[str, str, str, int]).decode
_decode_update = msgspec.json.Decoder(Update).decode

KIND = "queue"


def encode_key(key: Key) -> bytes:
    return _encode((KIND, key.group, key.topic_id.hex(), key.partition))


def encode_update(update: Update) -> bytes:
    return _encode(update)


def decode(key: bytes, value: bytes | None) -> tuple[Key, Update | None] | None:
    """None for a kind that this version does not know. A record that is no JSON of its kind raises."""
    try:
        kind, group, topic_id, partition = _decode_key(key)
    except msgspec.ValidationError:
        return None
    if kind != KIND:
        return None
    update = None if value is None else _decode_update(value)
    return Key(group, bytes.fromhex(topic_id), partition), update
