"""C1: whatever a node keeps in memory agrees with itself, at any moment."""

from __future__ import annotations

from postroad.broker.node import Node
from postroad.broker.partition import Partition


def check_cores(node: Node) -> None:
    """Raises AssertionError where a core contradicts itself."""
    node.image.check()
    for coordinator in node.groups.all():
        if coordinator.loaded:
            coordinator.groups.check()
    node.subscriptions.members.check()
    for group_id in sorted(node.subscriptions.ids()):
        for queue in node.subscriptions.subscription(group_id).queues.values():
            queue.core.check()
    for partition in node.partitions:
        for log in partition.with_ledger():
            _check_offsets(log)
            if log.follower is not None:
                log.follower.check()
        if partition.leadership is not None:
            partition.leadership.check()


def _check_offsets(partition: Partition) -> None:
    """L11."""
    log, name = partition.log, f"{partition.topic}-{partition.index}"
    assert log.start_offset <= partition.high_watermark, f"{name}: the log begins above its watermark"
    assert partition.high_watermark <= log.end_offset, f"{name}: the watermark is above the log's end"
    assert partition.stable_offset <= partition.high_watermark, f"{name}: what is not committed is stable"
    for marker, first in log.producer_states.ended.items():
        assert marker < partition.high_watermark or partition.stable_offset <= first, (
            f"{name}: {first} is stable, and its marker at {marker} is not committed"
        )
