"""The partitions inside a classic member's assignment (protocol type "consumer").

Layout (all versions begin so; big endian): version int16, then an array of topics, each a name (a string with
an int16 length) and an array of int32 partitions; then user data, bytes with an int32 length, -1 for none.
Subscriptions list the partitions that a member owns in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct, error
from typing import Final

from postroad.groups.requests import Partitions, TopicPartition, Topics

_VERSION: Final = Struct(">h")
_COUNT: Final = Struct(">i")
_LENGTH: Final = Struct(">h")
_NO_USER_DATA: Final = b"\xff\xff\xff\xff"

NamedPartitions = Mapping[str, list[int]]


class Malformed(ValueError):
    """The bytes are not what a consumer writes."""


def encode(assigned: NamedPartitions, version: int) -> bytes:
    out = [_VERSION.pack(version), _COUNT.pack(len(assigned))]
    for topic, partitions in assigned.items():
        name = topic.encode()
        out += [_LENGTH.pack(len(name)), name, _COUNT.pack(len(partitions))]
        out += [_COUNT.pack(partition) for partition in partitions]
    out.append(_NO_USER_DATA)
    return b"".join(out)


def decode(data: bytes) -> NamedPartitions:
    """Raises Malformed. No bytes at all are no partitions: a member that was not assigned any yet."""
    if not data:
        return {}
    return read_partitions(data, _VERSION.size)[0]


def read_partitions(data: bytes, at: int) -> tuple[NamedPartitions, int]:
    """The topics with their partitions that begin at `at`, and where they end. Raises Malformed."""
    found: dict[str, list[int]] = {}
    try:
        topics, at = read_count(data, at)
        for _ in range(topics):  # ends with the bytes: each topic takes at least six
            name, at = read_string(data, at)
            count, at = read_count(data, at)
            found.setdefault(name, []).extend(
                value for (value,) in _COUNT.iter_unpack(_slice(data, at, 4 * count))
            )
            at += 4 * count
    except (error, UnicodeDecodeError) as wrong:
        raise Malformed from wrong
    return found, at


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """Raises Malformed, struct.error or UnicodeDecodeError."""
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    return bytes(_slice(data, at, length)).decode(), at + length


def read_count(data: bytes, at: int) -> tuple[int, int]:
    """Raises Malformed or struct.error."""
    (count,) = _COUNT.unpack_from(data, at)
    if count < 0:
        raise Malformed
    return count, at + _COUNT.size


def _slice(data: bytes, at: int, length: int) -> memoryview:
    if length < 0 or at + length > len(data):
        raise Malformed
    return memoryview(data)[at : at + length]


def by_id(named: NamedPartitions, topics: Topics) -> Partitions:
    """Partitions of topics that exist, by topic id."""
    return frozenset(
        TopicPartition(topics.by_name[name].topic_id, partition)
        for name, partitions in named.items()
        if name in topics.by_name
        for partition in partitions
        if 0 <= partition < topics.by_name[name].partitions
    )


def by_name(partitions: Iterable[TopicPartition], topics: Topics) -> NamedPartitions:
    """Partitions of topics that exist, by name."""
    names = {info.topic_id: name for name, info in topics.by_name.items()}
    found: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        if topic_id in names:
            found.setdefault(names[topic_id], []).append(partition)
    return found
