"""The role of each replica on this node: it leads or follows, as the coordination store says.

Every change is synchronous. A replica that stops leading has told everybody who waits for it before the next
request is looked at, and one that begins to lead has begun its leader epoch (KIP-279). A log that is being
cut takes its role when that is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.broker.isr_writer import IsrWriter
from postroad.broker.partition import Partition
from postroad.broker.replica_fetchers import ReplicaFetchers
from postroad.cluster import keys, partition_rules
from postroad.cluster.image import NO_LEADER, Changes, Topic
from postroad.cluster.keys import PartitionState
from postroad.replication.leader import LEDGER, Leader
from postroad.replication.progress import LogStart

if TYPE_CHECKING:
    from postroad.broker.node import Node


class RoleCounts:
    """What has happened to the partitions that this node leads, since its start."""

    def __init__(self, me: int) -> None:
        self._me = me
        self.elected = self.joined = self.left = 0

    def count(self, before: PartitionState, after: PartitionState) -> None:
        if after.leader != self._me:
            return
        self.elected += after.leader_epoch != before.leader_epoch
        self.joined += len(set(after.isr) - set(before.isr))
        self.left += len(set(before.isr) - set(after.isr))


class Roles:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._lag_ms = node.settings.cluster.replica_lag_ms
        self.fetchers = ReplicaFetchers(node, self.log_changed)
        self.isr_writer = IsrWriter(node)
        self.counts = RoleCounts(self._me)

    def follow_changes(self, changes: Changes) -> None:
        """The store names other leaders, other replicas in sync, or other nodes."""
        for change in changes.partitions:
            self.counts.count(change.before, change.after)
            partition = self._node.partitions.replica(change.topic.id, change.index)
            if partition is not None:
                self.assume(partition)
        self.isr_writer.followed()
        if changes.nodes_changed:
            self.isr_writer.nodes_changed()
            if any(change.id == self._me and change.after is None for change in changes.nodes_changed):
                self._node.registration.entry_gone()

    def assume(self, partition: Partition) -> None:
        """Take the role that the store names now."""
        topic = self._node.image.topics_by_id.get(partition.topic_id)
        if topic is None or partition.closed or self.fetchers.is_cutting(partition):
            return
        state = topic.partitions[partition.index]
        if state.leader == self._me:
            self._lead(partition, topic, state)
        else:
            self._follow(partition, state)

    def log_changed(self, partition: Partition) -> None:
        """The partition's log was cut or begun anew: it takes its role now, if that has changed meanwhile."""
        self.assume(partition)

    def ledger_added(self, partition: Partition) -> None:
        """The partition's ledger is open: it has the role of its messages."""
        ledger, leadership = partition.ledger, partition.leadership
        assert ledger is not None
        if not partition.leads:
            topic = self._node.image.topics_by_id.get(partition.topic_id)
            if topic is not None:
                self._follow(partition, topic.partitions[partition.index])
            return
        if leadership is not None:
            leadership.add_log(_start_of(ledger), self._node.clock.monotonic_ms())
        ledger.become_leader(partition.leader_epoch, leadership, LEDGER)
        self._node.subscriptions.partition_led(partition, is_new=True)

    def altered(self, partition: Partition) -> None:
        """The topic's minimum of replicas may have changed."""
        leadership = partition.leadership
        topic = self._node.image.topics_by_id.get(partition.topic_id)
        if leadership is not None and topic is not None:
            state = topic.partitions[partition.index]
            leadership.min_insync_changed(partition_rules.min_insync(topic, state))
            self.share(partition, leadership)
        elif partition.leads:
            partition.share_leadership(None)

    # --- leading

    def _lead(self, partition: Partition, topic: Topic, state: PartitionState) -> None:
        if partition.leads and partition.leader_epoch == state.leader_epoch:
            self._confirm(partition, topic, state)
            return
        if partition.leads:  # another may have led in between: whoever waits starts over
            self.stop_leading(partition)
        self.fetchers.remove(partition)
        leadership = self._leadership(partition, topic, state)
        for number, log in enumerate(partition.with_ledger()):
            log.become_leader(state.leader_epoch, leadership, number)
        self._node.partitions.show(partition)
        if leadership is not None:
            self.isr_writer.watch(partition)
        self._node.partition_led(partition)

    def _leadership(self, partition: Partition, topic: Topic, state: PartitionState) -> Leader | None:
        if state.replicas == (self._me,):
            return None
        return Leader(
            self._me,
            state.leader_epoch,
            [_start_of(log) for log in partition.with_ledger()],
            replicas=state.replicas,
            isr=state.isr,
            elr=state.elr,
            revision=self._revision(topic, partition.index),
            min_insync=partition_rules.min_insync(topic, state),
            lag_ms=self._lag_ms,
            now_ms=self._node.clock.monotonic_ms(),
        )

    def _confirm(self, partition: Partition, topic: Topic, state: PartitionState) -> None:
        """This node leads as before; who is in sync, or which replicas there are, has changed."""
        leadership = partition.leadership
        if leadership is None:
            leadership = self._leadership(partition, topic, state)
            if leadership is not None:
                self.isr_writer.watch(partition)
        else:
            revision, now_ms = self._revision(topic, partition.index), self._node.clock.monotonic_ms()
            leadership.confirmed(state.isr, state.elr, revision, now_ms, state.replicas)
            leadership.min_insync_changed(partition_rules.min_insync(topic, state))
        self.share(partition, leadership)

    def share(self, partition: Partition, leadership: Leader | None) -> None:
        """What the leader knows of its replicas has changed: watermarks may have moved."""
        for log in partition.with_ledger():
            log.share_leadership(leadership)
            if leadership is not None:
                log.commit(leadership.watermark(log.log_number))

    def _revision(self, topic: Topic, index: int) -> int:
        return self._node.image.key_revision(
            keys.chunk_key(topic.id_text, index // keys.PARTITIONS_PER_CHUNK)
        )

    def stop_leading(self, partition: Partition) -> None:
        """Nothing is served any more, before the store is asked to let another node lead."""
        self._node.partitions.hide(partition)
        for log in partition.with_ledger():
            log.become_follower(partition.leader_epoch)
        self._node.partitions.show(partition)
        self._node.partition_resigned(partition)

    # --- following

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        was_leading = partition.leads
        self._node.partitions.hide(partition)
        for log in partition.with_ledger():
            log.become_follower(state.leader_epoch)
            assert log.follower is not None
            log.follower.follow(state.leader, state.leader_epoch)
        self._node.partitions.show(partition)
        if was_leading:
            self._node.partition_resigned(partition)
        if state.leader == NO_LEADER:
            self.fetchers.remove(partition)
        else:
            self.fetchers.add(partition, state.leader)


def _start_of(partition: Partition) -> LogStart:
    return LogStart(partition.log.end_offset, partition.safe_offset, partition.high_watermark)
