"""L12: at rest the bytes of all replicas are equal up to the watermark, and epochs never fall along a log."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from postroad.broker.node import Node
from postroad.broker.partition import Partition
from postroad.cluster.image import Topic
from simulator.partition_files import segment_path, segments
from simulator.service import Service
from simulator.violation import Violation

HEADER: Final = struct.Struct(">qii")  # base offset, length of what follows these two, leader epoch
PREFIX: Final = 12  # base offset and length


class Batch(NamedTuple):
    offset: int
    epoch: int
    content: bytes


class Copy(NamedTuple):
    """One replica of a log."""

    node: int
    start: int
    watermark: int
    batches: Sequence[Batch]


def check(services: Sequence[Service], fragile: Collection[str] = ()) -> Iterator[Violation]:
    """Compare what lies on the drives of nodes that run, but for topics that are there to be damaged."""
    nodes = [service.node for service in services if service.node is not None and service.serves]
    image = nodes[0].image if nodes else None
    for topic in image.topics.values() if image is not None else ():
        if topic.name in fragile:
            continue
        for index in range(len(topic.partitions)):
            for is_ledger in (False, True):
                copies = [copy for each in services if (copy := _copy(each, topic, index, is_ledger))]
                name = f"{topic.name}-{index}{' (ledger)' if is_ledger else ''}"
                yield from check_epochs(name, copies)
                if not _is_compacted(topic):
                    yield from check_equal(name, copies)


def check_epochs(name: str, copies: Sequence[Copy]) -> Iterator[Violation]:
    for copy in copies:
        for before, after in zip(copy.batches, copy.batches[1:], strict=False):
            if after.epoch < before.epoch or after.offset <= before.offset:
                yield Violation(
                    "L12",
                    f"{name} on node {copy.node}: ({after.offset}, epoch {after.epoch}) follows "
                    f"({before.offset}, epoch {before.epoch})",
                )


def check_equal(name: str, copies: Sequence[Copy]) -> Iterator[Violation]:
    """Between the latest start and the lowest watermark."""
    if not copies:
        return
    start, end = max(copy.start for copy in copies), min(copy.watermark for copy in copies)
    first, *others = ([batch for batch in copy.batches if start <= batch.offset < end] for copy in copies)
    for copy, other in zip(copies[1:], others, strict=True):
        if other != first:
            pairs = zip(first, other, strict=False)
            parting = next((one.offset for one, two in pairs if one != two), min(len(first), len(other)))
            yield Violation(
                "L12", f"{name}: nodes {copies[0].node} and {copy.node} differ below {end}, at {parting}"
            )


def batches_in(content: bytes) -> Iterator[Batch]:
    """All whole batches of a segment."""
    position = 0
    while position + HEADER.size <= len(content):
        offset, length, epoch = HEADER.unpack_from(content, position)
        end = position + PREFIX + length
        if length <= 0 or end > len(content):
            return
        yield Batch(offset, epoch, content[position:end])
        position = end


def _copy(service: Service, topic: Topic, index: int, is_ledger: bool) -> Copy | None:
    log = None if service.node is None else _log(service.node, topic, index, is_ledger)
    if log is None or not service.serves:
        return None
    drive, found = service.machine.drive, []
    for base in segments(drive, log.log.directory):
        content = drive.content(segment_path(log.log.directory, base))
        found += [batch for batch in batches_in(content) if batch.offset < log.log.written_offset]
    return Copy(service.number, log.log.start_offset, log.high_watermark, found)


def _log(node: Node, topic: Topic, index: int, is_ledger: bool) -> Partition | None:
    partition = node.partitions.replica(topic.id, index)
    return partition.ledger if is_ledger and partition is not None else partition


def _is_compacted(topic: Topic) -> bool:
    """Each replica compacts by itself, so that their bytes differ."""
    return topic.internal or "compact" in topic.config.get("cleanup.policy", "")
