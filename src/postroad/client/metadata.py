"""What a client knows of the cluster: its nodes, and who leads each partition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from postroad.errors import ConfigurationError, LeaderNotAvailable, UnknownTopicOrPartition

NO_LEADER: Final = -1
DEFAULT_PORT: Final = 9092
SHOWN: Final = 60  # so much of a wrong address is repeated
_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Partition(NamedTuple):
    number: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Topic(NamedTuple):
    name: str
    id: bytes
    is_internal: bool
    partitions: tuple[Partition, ...]

    def leader(self, partition: int) -> int:
        """The node that leads it. UnknownTopicOrPartition, or LeaderNotAvailable while there is none."""
        self.check(partition)
        leader = self.partitions[partition].leader
        if leader == NO_LEADER:
            raise LeaderNotAvailable(f"{self.name}/{partition} has no leader now.")
        return leader

    def check(self, partition: int) -> None:
        """Raise UnknownTopicOrPartition if there is no such partition, whoever leads it."""
        if not 0 <= partition < len(self.partitions):
            raise UnknownTopicOrPartition(
                f"Topic {self.name} has {len(self.partitions)} partitions; there is no {partition}."
            )


class Cluster(NamedTuple):
    """One answer to Metadata. `failed` holds the error code of each topic that could not be had."""

    id: str | None
    controller: int
    nodes: Mapping[int, Address]
    topics: Mapping[str, Topic]
    failed: Mapping[str, int]


def read(answer: Any) -> Cluster:
    """From a MetadataResponse."""
    topics: dict[str, Topic] = {}
    failed: dict[str, int] = {}
    for found in answer.topics:
        name = found.name or ""
        if found.error_code:
            failed[name] = found.error_code
            continue
        partitions = sorted(map(_partition, found.partitions))
        topics[name] = Topic(name, bytes(found.topic_id), found.is_internal, tuple(partitions))
    nodes = {node.node_id: Address(node.host, node.port) for node in answer.brokers}
    return Cluster(answer.cluster_id, answer.controller_id, nodes, topics, failed)


def _partition(found: Any) -> Partition:
    return Partition(
        found.partition_index,
        found.leader_id,
        found.leader_epoch,
        tuple(found.replica_nodes),
        tuple(found.isr_nodes),
    )


def parse_bootstrap(text: str) -> list[Address]:
    """`host:port,host:port`; an IPv6 address stands in brackets; the port may be left out."""
    addresses: list[Address] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            host, port = part, str(DEFAULT_PORT)
        if not _PORT.fullmatch(port) or not 0 < int(port) < 65536 or not _is_host(host):
            raise ConfigurationError(f"bootstrap: {part[:SHOWN]!r} is not host:port")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise ConfigurationError("bootstrap: name at least one node as host:port")
    return addresses


def _is_host(text: str) -> bool:
    """As far as can be told without asking for it. What has no form in DNS can't be looked up at all."""
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return bool(text) and "/" not in text and text.startswith("[") == text.endswith("]")
