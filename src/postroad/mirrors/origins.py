"""Where a message comes from, in its headers (`wire.header_names`); the same that Spark's mirror writes.

Each mirror that a message passes adds five headers behind those that it has: cluster, topic, partition,
offset and time of what was copied. A message that has been in a cluster names it in one of them, and is not
sent there again. So two clusters may mirror each other, and any number of them in a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroad.wire import header_names as names
from postroad.wire.records import Record

Headers = Sequence[tuple[str, bytes | None]]


class ClusterPartition(NamedTuple):
    """A partition of a cluster."""

    cluster: str
    topic: str
    partition: int


class Origin(NamedTuple):
    partition: ClusterPartition
    offset: int


def origins(headers: Headers) -> list[Origin]:
    """The nearest is the last. What is no origin that a mirror would write is left out."""
    found: list[dict[str, str]] = []
    for name, value in headers:
        if name == names.ORIGIN_CLUSTER:
            found.append({})
        if found and name.startswith(names.ORIGIN):
            found[-1][name] = (value or b"").decode(errors="replace")
    return [origin for facts in found if (origin := _origin(facts)) is not None]


def been_in(headers: Headers, cluster: bytes) -> bool:
    return any(name == names.ORIGIN_CLUSTER and value == cluster for name, value in headers)


class Stamp:
    """Writes the origin of one partition's messages."""

    def __init__(self, partition: ClusterPartition) -> None:
        self._before = [
            (names.ORIGIN_CLUSTER, partition.cluster.encode()),
            (names.ORIGIN_TOPIC, partition.topic.encode()),
            (names.ORIGIN_PARTITION, b"%d" % partition.partition),
        ]

    def headers(self, record: Record) -> list[tuple[str, bytes | None]]:
        """Those of the copy."""
        return [
            *record.headers,
            *self._before,
            (names.ORIGIN_OFFSET, b"%d" % record.offset),
            (names.ORIGIN_TIMESTAMP, b"%d" % record.timestamp),
        ]


def _origin(facts: dict[str, str]) -> Origin | None:
    cluster, topic = facts.get(names.ORIGIN_CLUSTER, ""), facts.get(names.ORIGIN_TOPIC, "")
    partition, offset = facts.get(names.ORIGIN_PARTITION, ""), facts.get(names.ORIGIN_OFFSET, "")
    if not (_is_number(partition) and _is_number(offset)):
        return None
    return Origin(ClusterPartition(cluster, topic, int(partition)), int(offset))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20
