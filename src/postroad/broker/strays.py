"""Directories of partitions that have moved away: they are deleted once the partition is safe without them.

Over state, not events: whatever lies in `logs/` of a topic that exists, and of which the coordination store
names no replica here, is a stray. So a node that was down while its partitions moved away, or that died
between closing and deleting, finds them later. A directory whose topic is unknown is no stray: it is kept.

Before anything is deleted
- the partition must be well without this node: it has a leader that lives, and enough replicas in sync;
- the store's revision is noted in node.json, durably: with an older store, which may count on what is
  deleted, the node refuses to start;
- the node's entry is written anew, which gives it another broker epoch: a fetch from before, still on its
  way, promises what is deleted. If the partition comes back here that promise must not let it join the ISR
  (`cluster.reassignment`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.partitions import TopicPartition
from postroad.broker.tasks import until_done
from postroad.cluster import partition_rules
from postroad.cluster.ids import id_bytes
from postroad.errors import ApiError, CoordinationError

if TYPE_CHECKING:
    from postroad.broker.node import Node

LOOK_S: Final = 10.0  # between two looks without a reason: a directory that stays for a while does no harm
SOON_S: Final = 0.2  # partitions that moved away in the same moment are deleted under one new epoch

log = logging.getLogger(__name__)


class Strays:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._wanted = asyncio.Event()

    def look(self) -> None:
        """A partition has moved away."""
        self._wanted.set()

    async def run(self) -> None:
        """Delete strays, again and again, for as long as the node lives."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._wanted.wait()
                    await asyncio.sleep(SOON_S)
            self._wanted.clear()
            try:
                await self.delete()
            except (OSError, ApiError, CoordinationError) as error:
                log.warning("partitions that have moved away can't be deleted; still trying: %s", error)
            except Exception:  # whatever it is, it is tried again
                log.exception("partitions that have moved away can't be deleted; still trying")

    async def delete(self) -> None:
        """Delete all strays that can be; their files go in the background."""
        node = self._node
        directories = await node.slow_workers.call(node.directory.partitions)
        found = [where for where in map(_where, directories) if self._is_stray(where)]
        if not found:
            return
        await node.slow_workers.call(partial(node.directory.note_revision, node.image.revision))
        await node.registration.fence()
        for where in found:
            if self._is_stray(where):
                node.replicas.work_on(where, partial(self._delete, where), "delete-stray")

    def _is_stray(self, where: TopicPartition) -> bool:
        image = self._node.image
        topic = image.topics_by_id.get(where[0])
        if topic is None or where[1] >= len(topic.partitions):
            return False
        state = topic.partitions[where[1]]
        return (
            self._node.settings.node.id not in state.replicas
            and not self._node.replicas.is_busy(where)
            and state.leader in image.nodes
            and len(state.isr) >= partition_rules.min_insync(topic, state)
        )

    async def _delete(self, where: TopicPartition) -> None:
        """The partition is opened after this, if it has come back."""
        topic_id, index = where
        directory, workers = self._node.directory, self._node.slow_workers

        async def remove() -> None:
            await workers.call(partial(directory.remove_partition, topic_id, index))

        if not self._node.replicas.is_here(topic_id, index):
            path = directory.partition_directory(topic_id, index)
            await until_done(remove, f"{path}, which has moved away, can't be deleted")
            log.info("%s, which has moved away, was deleted", path)


def _where(directory: tuple[str, int]) -> TopicPartition:
    return id_bytes(directory[0]), directory[1]
