"""The topics inside a classic member's metadata (protocol type "consumer").

Layout (all versions begin so; big endian): version int16, then an array of topic names, each a string with
an int16 length. What follows (user data, owned partitions, generation, rack) is the clients' own affair.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final

CONSUMER_PROTOCOL: Final = "consumer"

_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """None if the bytes are not a consumer's subscription."""
    try:
        version, count = _HEAD.unpack_from(metadata)
        if version < 0 or count < 0:
            return None
        topics = []
        at = _HEAD.size
        for _ in range(count):  # ends with the bytes: each topic takes at least two
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size
            if length < 0 or at + length > len(metadata):
                return None
            topics.append(metadata[at : at + length].decode())
            at += length
    except (error, UnicodeDecodeError):
        return None
    return frozenset(topics)
