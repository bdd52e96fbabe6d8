"""Partitions and consumer groups on a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from postroad.broker.groups.coordinator import Coordinator
from postroad.broker.metrics.ages import age_s
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.metrics.page import COUNTER, GAUGE, Page, labels

if TYPE_CHECKING:
    from postroad.broker.node import Node


def write_partitions(page: Page, node: Node) -> Iterator[None]:
    """One step for each partition."""
    end = page.family("postroad_partition_end_offset", COUNTER, "Messages that were ever committed.")
    start = page.family("postroad_partition_start_offset", COUNTER, "The first offset that is still there.")
    size = page.family("postroad_partition_size_bytes", GAUGE, "Bytes on the disk.")
    page.family("postroad_topics", GAUGE, "Topics, internal ones too.").add(len(node.image.topics))
    offline = page.family("postroad_partitions_offline", GAUGE, "Partitions whose logs can't be opened.")
    offline.add(len(node.partitions.offline()))
    for partition in list(node.partitions):
        given = labels(topic=partition.topic, partition=partition.index)
        end.add(partition.high_watermark, given)
        start.add(partition.log.start_offset, given)
        size.add(sum(each.log.size_bytes for each in partition.with_ledger()), given)
        yield


def write_groups(page: Page, node: Node) -> Iterator[None]:
    """One step for each group."""
    states = page.family("postroad_group_state", GAUGE, "1, with the group's state as a label.")
    lag = page.family("postroad_group_lag_messages", GAUGE, "Messages behind the committed offset.")
    lag_s = page.family("postroad_group_lag_seconds", GAUGE, "The age of the first message behind it.")
    doubt = page.family("postroad_group_in_doubt", GAUGE, "1: what it committed there last may be lost.")
    damaged = page.family("postroad_group_state_damaged", GAUGE, "Damaged stretches that were skipped.")
    now_ms = node.clock.now_ms()
    for coordinator in node.groups.all():
        if not coordinator.loaded:
            continue
        if coordinator.doubts.batches:
            damaged.add(
                coordinator.doubts.batches, labels(topic=OFFSETS_TOPIC, partition=coordinator.partition.index)
            )
        for given in _in_doubt(coordinator):
            doubt.add(1, given)
        for group in coordinator.groups.list():
            states.add(1, labels(group=group.group_id, state=group.state))
            for topic, index, offset in _committed(coordinator, group.group_id):
                partition = node.partitions.find(topic, index)
                if partition is not None:
                    given = labels(group=group.group_id, topic=topic, partition=index)
                    behind = max(partition.high_watermark - max(offset, partition.log.start_offset), 0)
                    lag.add(behind, given)
                    lag_s.add(age_s(partition, partition.high_watermark - behind, now_ms), given)
            yield


def _in_doubt(coordinator: Coordinator) -> list[str]:
    """The labels of each committed offset that is in doubt."""
    return [
        labels(group=group, topic=topic, partition=partition)
        for group, offset_keys in sorted(coordinator.doubts.offset_keys.items())
        for topic, partition in sorted(offset_keys)
    ]


def _committed(coordinator: Coordinator, group_id: str) -> list[tuple[str, int, int]]:
    found = coordinator.groups.fetch(group_id, None)
    return [(one.topic, one.partition, one.value.offset) for one in found if one.value is not None]
