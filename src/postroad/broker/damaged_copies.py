"""`DamagedCopies`: a replica that finds damage in its log leads no more, and copies the log anew.

What lies on the disk may change by itself. The CRC of a batch tells, when it is read for the first time after
a start, and whoever reads there gets CORRUPT_MESSAGE. Where enough other replicas are in sync the partition
is better led by one of these: this node leaves the ISR, deletes its copy and follows as if it were new.

Deleting is safe only when nobody counts on the copy. So the node is out of ISR and ELR first, by its own
commit, and takes another broker epoch: a fetch from before promises what is gone (as in `strays`). A copy
that too few others could replace is kept as it is, and so is one whose node dies before it is deleted: the
damage is found again when it leads and is read there.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.partition import Partition
from postroad.broker.partitions import TopicPartition
from postroad.broker.tasks import until_done
from postroad.cluster import partition_rules
from postroad.cluster.image import Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.membership import may_lead

if TYPE_CHECKING:
    from postroad.broker.node import Node

log = logging.getLogger(__name__)


class DamagedCopies:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id

    def found(self, partition: Partition) -> None:
        """A read has found a batch whose CRC does not hold. What follows begins when the read has ended."""
        self._node.loop.call_soon(self._replace, partition)

    def _replace(self, partition: Partition) -> None:
        where = partition.topic_id, partition.index
        if not partition.closed and self._has_enough_others(where):
            log.error(
                "%s-%d is damaged on this node: another replica leads it, and it is copied anew",
                partition.topic,
                partition.index,
            )
            self._node.replicas.begin_anew(partition, partial(self._drop, where))

    async def _drop(self, where: TopicPartition) -> None:
        """Delete the copy, unless somebody may count on it by now."""

        async def drop() -> None:
            if not self._is_spare(where):
                return
            node = self._node
            await node.slow_workers.call(partial(node.directory.note_revision, node.image.revision))
            await node.registration.fence()
            if self._is_spare(where):
                await node.slow_workers.call(partial(node.directory.remove_partition, *where))

        await until_done(drop, "a damaged copy can't be deleted")

    def _has_enough_others(self, where: TopicPartition) -> bool:
        found = self._state(where)
        if found is None:
            return False
        topic, state = found
        others = [node for node in state.isr if node != self._me and may_lead(self._node.image, node)]
        return len(others) >= partition_rules.min_insync(topic, state)

    def _is_spare(self, where: TopicPartition) -> bool:
        found = self._state(where)
        if found is None:
            return False
        topic, state = found
        counts = self._me in (*state.isr, *state.elr)
        return not counts and len(state.isr) >= partition_rules.min_insync(topic, state)

    def _state(self, where: TopicPartition) -> tuple[Topic, PartitionState] | None:
        topic = self._node.image.topics_by_id.get(where[0])
        if topic is None or self._me not in topic.partitions[where[1]].replicas:
            return None
        return topic, topic.partitions[where[1]]
