"""Cluster and topic ids: 16 random bytes, and as text 22 characters of URL-safe base64, like Kafka's.

The ledgers of a topic's partitions go by an id of their own, which follows from the topic's (`ledger_id`).
Transactions name them by another one (`pledges_id`), which tells the topic's.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256
from typing import Final

ID_BYTES: Final = 16

# Kafka sets aside the lowest hundred numbers (0 is "no id", 1 its metadata topic).
_RESERVED: Final = 100

_PLEDGES: Final = 0x80


def make_id(random: bytes) -> bytes:
    """An id from 16 random bytes.

    The highest bit is cleared so that the text never begins with '-': it names directories and is typed
    after command-line flags.
    """
    assert len(random) == ID_BYTES
    made = bytes([random[0] & 0x7F]) + random[1:]
    assert int.from_bytes(made, "big") >= _RESERVED, "these bytes are not random"
    return made


def ledger_id(topic_id: bytes) -> bytes:
    """The id by which replicas fetch the ledgers of the topic's partitions; the store does not know it."""
    return make_id(sha256(topic_id + b"ledger").digest()[:ID_BYTES])


def pledges_id(topic_id: bytes) -> bytes:
    """The id by which transactions name the ledgers of the topic's partitions. No topic has it: the highest
    bit is set."""
    return bytes([topic_id[0] | _PLEDGES]) + topic_id[1:]


def topic_of_pledges(named: bytes) -> bytes | None:
    """The topic's id, where a transaction names ledgers; None where it names the topic itself."""
    return bytes([named[0] & ~_PLEDGES]) + named[1:] if named[0] & _PLEDGES else None


def id_text(raw: bytes) -> str:
    assert len(raw) == ID_BYTES
    return base64.urlsafe_b64encode(raw)[:-2].decode()


def id_bytes(text: str) -> bytes:
    """The reverse of `id_text`; raises ValueError for anything that it did not write."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is no id") from error
    if len(raw) != ID_BYTES or id_text(raw) != text:
        raise ValueError(f"{text!r} is no id")
    return raw
