"""The model of replication with a fourth node, and partitions that move between all of them.

What is new beside `replication_model`: an operator moves partitions, cancels moves and drains a node; the
controller evacuates and completes; leaders hand over what leaves them; and a node that is no replica any more
deletes its log, after it has taken another broker epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from postroad.cluster import keys, leadership, membership, reassignment
from postroad.cluster.decision import Decision
from postroad.cluster.image import NodeEntry
from postroad.cluster.keys import PartitionState
from postroad.cluster.partition_rules import Standing
from postroad.cluster.store import Compare, Put
from tests.cluster.replication_model import (
    CONTROLLER,
    NODE,
    NODES,
    TOPICS,
    Pending,
    Replica,
    Replication,
    Violation,
)
from tests.cluster.replication_steps import STEPS, Pick, Step

FOUR = (*NODES, 4)


class Moving(Replication):
    ids = FOUR

    def __init__(self) -> None:
        self.moves = 0  # that were completed
        self.cancelled = 0
        self.swept = 0  # logs that were deleted
        super().__init__()
        level = Put(keys.LEVEL_KEY, keys.encode(keys.LevelValue(keys.LEVEL)))
        self.commit(Pending(0, NODE, Decision([], [level])))

    def _check_step(
        self,
        sent: Pending,
        before: PartitionState,
        after: PartitionState,
        alive: dict[int, NodeEntry],
        key: int,
    ) -> None:
        super()._check_step(sent, before, after, alive, key)
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            raise Violation("an epoch has two leaders")
        if len(after.isr) < len(before.isr) and after.replicas != before.replicas:
            self._check_completed(before, after)

    def _check_completed(self, before: PartitionState, after: PartitionState) -> None:
        self.moves += 1
        if before.adding or not set(after.replicas) - set(before.original) <= set(before.isr):
            raise Violation(f"a move ended before all that it added were in sync: {before} {after}")

    # --- nodes ---------------------------------------------------------------------------------------

    def send_fetch(self, node: Replica, topic: str) -> None:
        if node.running == "up" and node.id in node.state(topic).replicas:
            super().send_fetch(node, topic)

    def sweep(self, node: Replica) -> None:
        """Delete the logs of which the node has no replica, under another broker epoch."""
        if node.running != "up" or not self._strays(node):
            return
        if self.fence(node):
            self.learn(node)
            for topic in self._strays(node):
                node.logs[topic].clear()
                node.marks[topic] = 0
                node.synced = len(node.logs["sync"])
                self.swept += 1

    def _strays(self, node: Replica) -> list[str]:
        """The logs of partitions that are served well by others."""
        found = []
        for topic in TOPICS:
            state = node.state(topic)
            if node.logs[topic] and node.id not in state.replicas:
                found.append(topic)
        return found

    def fence(self, node: Replica) -> bool:
        """The node writes its entry anew: its fetches of before count no more."""
        if node.id not in node.image.nodes:
            return False
        key = keys.node_key(node.id)
        entry = NodeEntry(node.id, "host", 9092, f"life{node.life}", f"disk{node.id}", keys.SERVING)
        fields = {name: getattr(entry, name) for name in entry.__struct_fields__ if name != "id"}
        put = Put(key, keys.encode(keys.NodeValue(**fields)), node.lease)
        return self.commit(
            Pending(node.id, NODE, Decision([Compare(key, node.image.key_revision(key))], [put]))
        )

    def hand_over(self, node: Replica) -> None:
        """The node hands over what it leads and should not."""
        if node.running != "up":
            return
        for move in leadership.leaving_moves(node.image, node.id):
            name = node.image.topics_by_id[move.topic_id].name
            self.resign(node, name, move.to, Standing.STAYS)

    # --- the operator and the controller -------------------------------------------------------------

    def reassign(self, node: Replica, topic: str, wanted: Sequence[int] | None) -> None:
        """The operator asks a node; what it decides arrives at any later time."""
        if node.running != "up":
            return
        image = node.image
        able = all(other in membership.placeable(image) for other in wanted or ())
        if able and (wanted is not None or reassignment.is_moving(node.state(topic))):
            self.cancelled += wanted is None
            self._send(node, reassignment.reassign(image, node.id, {(image.topics[topic].id, 0): wanted}))

    def drain(self, node: int, cancel: bool) -> None:
        """The operator drains one node at a time, or cancels that."""
        if cancel and node in self.truth.drains:
            self.commit(Pending(0, NODE, membership.cancel_drain(self.truth, node)))
        elif not cancel and not self.truth.drains:
            self.commit(Pending(0, NODE, membership.drain(self.truth, node)))

    def control(self, node: Replica) -> None:
        if node.running != "up":
            return
        image = node.image
        key = image.key_revision(keys.CONTROLLER)
        decisions = [
            *reassignment.finish(image, node.id),
            *reassignment.evacuate(image, node.id),
        ]
        self.pending += [Pending(node.id, CONTROLLER, decision, key) for decision in decisions]

    def _send(self, node: Replica, decisions: Sequence[Decision]) -> None:
        self.pending += [Pending(node.id, NODE, decision) for decision in decisions]

    # --- the end -------------------------------------------------------------------------------------

    def tend(self) -> None:
        for node in self.nodes.values():
            self.learn(node)
            self.sweep(node)
            self.hand_over(node)
            self.learn(node)
            self.control(node)
            while self.pending:
                self.deliver(0)

    def heal(self) -> None:
        super().heal()
        for topic in TOPICS:
            state = self.truth.topics[topic].partitions[0]
            if reassignment.is_moving(state):
                raise Violation(f"{topic} moves for ever: {state}")
            if set(state.replicas) & set(self.truth.drains):
                raise Violation(f"{topic} stays on a node that is drained: {state}")


def _reassign(model: Replication, pick: Pick) -> None:
    assert isinstance(model, Moving)
    left_out, turn = pick(FOUR), pick(range(3))
    wanted = [node for node in FOUR if node != left_out]
    wanted = [*wanted[turn:], *wanted[:turn]][: pick((2, 3, 3))]
    model.reassign(pick(list(model.nodes.values())), pick(TOPICS), wanted)


def _move(name: str) -> Step:
    def step(model: Replication, pick: Pick) -> None:
        node = pick(list(model.nodes.values()))
        model.learn(node)
        getattr(model, name)(node)

    return step


def _cancel(model: Replication, pick: Pick) -> None:
    assert isinstance(model, Moving)
    model.reassign(pick(list(model.nodes.values())), pick(TOPICS), None)


def _drain(model: Replication, pick: Pick) -> None:
    assert isinstance(model, Moving)
    model.drain(pick(FOUR), pick((True, True, False)))


MOVES: dict[str, tuple[Step, int]] = STEPS | {
    "reassign": (_reassign, 4),
    "cancel": (_cancel, 2),
    "drain": (_drain, 2),
    "control": (_move("control"), 12),
    "hand over": (_move("hand_over"), 6),
    "sweep": (_move("sweep"), 4),
}
