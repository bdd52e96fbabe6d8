"""Changes of in-sync replicas on their way to the coordination store.

A leader writes its own ISR and ELR by compare-and-set (KIP-497 without the request to a controller). What
all partitions of this node want is gathered for a moment and committed together, and one commit is under way
at a time. A change counts when the image shows it, never because of the store's answer; one that was not
answered may still come, so it counts as possible until the key has another revision (`replication.leader`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.cluster import keys, leadership
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.leadership import Move
from postroad.cluster.membership import may_join
from postroad.cluster.partition_rules import Standing
from postroad.errors import ApiError, CoordinationError, StoreUnavailable
from postroad.replication.in_sync import IsrChange
from postroad.replication.leader import Leader

if TYPE_CHECKING:
    from postroad.broker.node import Node

GATHER_S: Final = 0.02  # what happens in the same moment, say to all partitions of a dead node, is one commit
LOOK_S: Final = 0.25  # between two looks at who lags: a part of the shortest lag time

log = logging.getLogger(__name__)


class IsrWriter:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._led: dict[Partition, None] = {}  # with other replicas
        self._wanted = asyncio.Event()
        self._sent: dict[Partition, IsrChange] = {}  # no answer of the image yet

    def watch(self, partition: Partition) -> None:
        """This node leads the partition, which has other replicas."""
        self._led[partition] = None
        self._wanted.set()

    def nodes_changed(self) -> None:
        """A node that begins to serve may join, one that has gone may not."""
        for partition in self._led:
            if partition.leadership is not None:
                partition.leadership.serving_changed()
        self._wanted.set()

    def request(self) -> None:
        """Some leadership wants a change."""
        self._wanted.set()

    def followed(self) -> None:
        """The image has changed. What it says of the keys that were written counts."""
        for partition in list(self._sent):
            leader = partition.leadership
            topic = self._node.image.topics_by_id.get(partition.topic_id)
            if leader is None or topic is None:
                del self._sent[partition]
                continue
            self._confirm(partition, leader)
            if leader.revision > self._sent[partition].revision:
                del self._sent[partition]

    def _confirm(self, partition: Partition, leader: Leader) -> None:
        """Tell the leader of the revision that its key has: one key holds many partitions, and it may have
        been written for another's sake. A proposal on an old one would be refused for ever."""
        image = self._node.image
        revision, topic = self._revision(partition, image), image.topics_by_id.get(partition.topic_id)
        if topic is None or revision <= leader.revision:
            return
        state = topic.partitions[partition.index]
        if (state.leader, state.leader_epoch) == (self._me, leader.epoch):
            now_ms = self._node.clock.monotonic_ms()
            if leader.confirmed(state.isr, state.elr, revision, now_ms, state.replicas):
                self._node.roles.share(partition, leader)

    async def run(self) -> None:
        """Write changes of in-sync replicas, for as long as the node lives."""
        while True:
            try:
                async with asyncio.timeout(LOOK_S if self._led else None):
                    await self._wanted.wait()
                await asyncio.sleep(GATHER_S)
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                await self._write(self._proposals())
                await self._node.handover.leave_full(self._full())
            except Exception:  # one round that fails is not the end of it
                log.exception("changes of in-sync replicas could not be written")

    def _proposals(self) -> dict[Partition, IsrChange]:
        now_ms, image = self._node.clock.monotonic_ms(), self._node.image
        serving = {node: image.node_epoch(node) for node in image.nodes if may_join(image, node)}
        found = {}
        for partition in list(self._led):
            leader = partition.leadership
            if leader is None or partition.closed:
                del self._led[partition]
                continue
            if any(each.log.failed is not None for each in partition.with_ledger()):
                del self._led[partition]
                self._node.replicas.begin_anew(partition)
                continue
            leader.expire(now_ms)
            if leader.wants_change:
                self._confirm(partition, leader)
            if leader.wants_change and (change := leader.propose(now_ms, serving)) is not None:
                found[partition] = change
        return found

    def _full(self) -> list[Partition]:
        """Those that can't take what is sent to them."""
        return [partition for partition in self._led if any(log.is_full for log in partition.with_ledger())]

    async def _write(self, changes: dict[Partition, IsrChange]) -> None:
        if not changes:
            return
        self._sent |= changes
        resigning = [partition for partition, change in changes.items() if change.resigns]
        for partition in resigning:  # they have stopped serving before anybody can be elected
            self._node.roles.stop_leading(partition)
        committed: dict[str, bool | None] = {}  # by chunk: done, refused, or (None) nobody knows
        for decision in self._decisions(changes):
            outcome = await self._commit(decision)
            committed |= dict.fromkeys((operation.key for operation in decision.operations), outcome)
        now_ms = self._node.clock.monotonic_ms()
        for partition, change in changes.items():
            if partition.leadership is None:
                continue
            outcome = committed.get(self._key(partition), False)
            if outcome is None:
                partition.leadership.unknown(change, now_ms)
            elif not outcome:
                if partition.leadership.refused(change, now_ms):
                    self._node.roles.share(partition, partition.leadership)
                self._sent.pop(partition, None)
        self.followed()
        if any(committed.get(self._key(partition)) is not True for partition in resigning):
            for partition in resigning:
                self._sent.pop(partition, None)
            await self._node.handover.lead_again(resigning)

    async def _commit(self, decision: Decision) -> bool | None:
        try:
            return await self._node.topics.commit(decision, urgent=False) is not None
        except StoreUnavailable:
            return None
        except (ApiError, CoordinationError) as error:
            log.warning("a change of in-sync replicas was refused: %s", error)
            return False

    def _decisions(self, changes: dict[Partition, IsrChange]) -> list[Decision]:
        image = self._node.image
        wanted: list[leadership.IsrChange] = []
        repeated: list[tuple[bytes, int]] = []  # only another revision is needed
        resigning: list[Move] = []
        for partition, change in changes.items():
            if change.revision != self._revision(partition, image):
                continue  # the image has followed meanwhile: it is decided anew
            where = partition.topic_id, partition.index, partition.leader_epoch
            if change.resigns:
                resigning.append(Move(*where))
                continue
            state = image.topics_by_id[partition.topic_id].partitions[partition.index]
            leaves = frozenset(state.isr) - frozenset(change.isr)
            if not change.joiners and not leaves and change.elr == state.elr:
                repeated.append((partition.topic_id, partition.index))
            else:
                wanted.append(leadership.IsrChange(*where, dict(change.joiners), leaves))
        return [
            *leadership.change_isr(image, self._me, wanted),
            *leadership.write_again(image, self._me, repeated),
            *leadership.resign(image, self._me, resigning, Standing.LEAVES),
        ]

    def _revision(self, partition: Partition, image: Image) -> int:
        return image.key_revision(self._key(partition))

    def _key(self, partition: Partition) -> str:
        topic = self._node.image.topics_by_id.get(partition.topic_id)
        return (
            ""
            if topic is None
            else keys.chunk_key(topic.id_text, partition.index // keys.PARTITIONS_PER_CHUNK)
        )
