"""The topics inside a classic member's metadata (protocol type "consumer").

Layout (all versions begin so; big endian): version int16, then an array of topic names, each a string with
an int16 length, then user data, bytes with an int32 length (-1: none). From version 1 the partitions that the
member owns follow, as in an assignment (`assignment.py`). What comes after that (generation, rack) is the
clients' own affair.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from postroad.groups.assignment import Malformed, NamedPartitions, read_count, read_partitions, read_string

CONSUMER_PROTOCOL: Final = "consumer"
OWNED_FROM: Final = 1

_VERSION: Final = Struct(">h")
_USER_DATA_LENGTH: Final = Struct(">i")


class Subscription(NamedTuple):
    version: int
    topics: frozenset[str]
    owned: NamedPartitions  # members that give everything up before they join list none


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """None if the bytes are not a consumer's subscription."""
    try:
        return _read_topics(metadata)[1]
    except Malformed:
        return None


def read_subscription(metadata: bytes) -> Subscription:
    """Raises Malformed if the bytes are not a consumer's subscription."""
    version, topics, at = _read_topics(metadata)
    owned: NamedPartitions = {}
    if version >= OWNED_FROM:
        owned, _ = read_partitions(metadata, _after_user_data(metadata, at))
    return Subscription(version, topics, owned)


def _read_topics(metadata: bytes) -> tuple[int, frozenset[str], int]:
    """The version, the topics, and where they end."""
    try:
        (version,) = _VERSION.unpack_from(metadata)
        if version < 0:
            raise Malformed
        count, at = read_count(metadata, _VERSION.size)
        topics = []
        for _ in range(count):  # ends with the bytes: each topic takes at least two
            name, at = read_string(metadata, at)
            topics.append(name)
    except (error, UnicodeDecodeError) as wrong:
        raise Malformed from wrong
    return version, frozenset(topics), at


def _after_user_data(metadata: bytes, at: int) -> int:
    try:
        length: int = _USER_DATA_LENGTH.unpack_from(metadata, at)[0]
    except error as wrong:
        raise Malformed from wrong
    return at + _USER_DATA_LENGTH.size + max(length, 0)
