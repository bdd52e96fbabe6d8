"""Elections that an operator asks for: of preferred leaders, and of replicas that may lack messages.

A leader that lives hands over by itself (`handover`), so whoever is asked for a preferred leader asks the
partition's leader; a node that is asked by another asks nobody. An unclean election is the controller's: it
asks every replica that runs how far its log goes, and the furthest leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from postroad.broker.partitions import TopicPartition
from postroad.cluster import leadership, reconciliation
from postroad.cluster.image import Topic
from postroad.cluster.keys import PartitionState
from postroad.errors import (
    ApiError,
    CoordinationError,
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    LeaderNotAvailable,
    NotController,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownTopicOrPartition,
    by_code,
)
from postroad.wire import peer

if TYPE_CHECKING:
    from postroad.broker.node import Node

MOVE_S: Final = 3.0  # a hand-over takes milliseconds; it goes on where nobody waits for it any more
FOLLOW_S: Final = 1.0  # until this node has heard of it, too
LOOK_S: Final = 0.01

Outcomes = dict[TopicPartition, ApiError | None]
"""What became of each partition (topic id, index); None: it has the leader that was asked for."""


class Elections:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id

    # --- preferred leaders

    async def elect_preferred(self, wanted: Iterable[TopicPartition]) -> Outcomes:
        """Let the first replica of each partition lead, whichever node leads now."""
        outcomes: Outcomes = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for where in wanted:
            try:
                topic = self._topic(where)
                leadership.preferred_move(self._node.image, topic, where[1])
                by_leader.setdefault(topic.partitions[where[1]].leader, []).append(where)
            except ApiError as error:
                outcomes[where] = error
        for moved in await asyncio.gather(*(self._ask(*each) for each in by_leader.items())):
            outcomes |= moved
        moved_to = {where: self._state(where).replicas[0] for where, error in outcomes.items() if not error}
        await self._wait(lambda: all(self._leads(where, to) for where, to in moved_to.items()), FOLLOW_S)
        return outcomes

    async def _ask(self, leader: int, partitions: list[TopicPartition]) -> Outcomes:
        if leader == self._me:
            return await self.hand_over(partitions)
        try:
            answer = await self._node.peers.ask(leader, peer.HandOver(partitions))
        except ApiError as error:
            return dict.fromkeys(partitions, LeaderNotAvailable(str(error)))
        return {
            where: by_code(result.error_code, result.error_message) if result.error_code else None
            for where, result in zip(partitions, answer.results, strict=True)
        }

    async def hand_over(self, partitions: Sequence[TopicPartition]) -> Outcomes:
        """Let the preferred replicas of partitions that this node leads lead them."""
        outcomes: Outcomes = {}
        moves = {}
        for where in partitions:
            try:
                topic = self._topic(where)
                if topic.partitions[where[1]].leader != self._me:
                    raise NotLeaderOrFollower()
                moves[where] = leadership.preferred_move(self._node.image, topic, where[1])
            except ApiError as error:
                outcomes[where] = error
        if moves:
            # Not cancelled when its time is over: a leader that has stopped has to know who leads.
            moving = self._node.tasks.start(self._node.handover.move(list(moves.values())), "elect")
            await asyncio.wait([moving], timeout=MOVE_S)
            await self._wait(lambda: all(self._leads(w, move.to) for w, move in moves.items()), FOLLOW_S)
        for where, move in moves.items():
            outcomes[where] = None if self._leads(where, move.to) else RequestTimedOut()
        return outcomes

    # --- unclean elections

    async def elect_unclean(self, wanted: Iterable[TopicPartition]) -> Outcomes:
        """Let the replica with the furthest log lead each partition that nobody can lead otherwise.

        Raises NotController if another node has to be asked.
        """
        image = self._node.image
        if image.controller != self._me:
            raise NotController()
        outcomes: Outcomes = {}
        leaderless: list[TopicPartition] = []
        for where in wanted:
            try:
                topic = self._topic(where)
            except ApiError as error:
                outcomes[where] = error
                continue
            if topic.partitions[where[1]].leader in image.nodes:
                outcomes[where] = ElectionNotNeeded()
            else:
                leaderless.append(where)
        await self._commit_unclean(await self._log_ends(leaderless))
        for where in leaderless:
            elected = self._exists(where) and self._state(where).leader in self._node.image.nodes
            outcomes[where] = None if elected else EligibleLeadersNotAvailable()
        return outcomes

    async def _commit_unclean(self, ends: dict[TopicPartition, dict[int, tuple[int, int]]]) -> None:
        for decision in reconciliation.elect_unclean(self._node.image, self._me, ends):
            try:
                revision = await self._node.topics.commit(decision, urgent=True)
            except CoordinationError as error:
                raise RequestTimedOut(str(error)) from error
            if revision is not None:  # else the image has changed, and says what is left to do
                await self._node.topics.reach(revision, FOLLOW_S)

    async def _log_ends(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, dict[int, tuple[int, int]]]:
        """By partition, then node: the epoch and the end of its log. Nodes that don't answer are left out."""
        by_node: dict[int, list[TopicPartition]] = {}
        for where in partitions:
            for replica in self._state(where).replicas:
                if replica in self._node.image.nodes:
                    by_node.setdefault(replica, []).append(where)
        found: dict[TopicPartition, dict[int, tuple[int, int]]] = {where: {} for where in partitions}
        answers = await asyncio.gather(*(self._ends_at(*each) for each in by_node.items()))
        for (node, asked), ends in zip(by_node.items(), answers, strict=True):
            for where, end in zip(asked, ends, strict=True):
                if end is not None:
                    found[where][node] = end.epoch, end.offset
        return found

    async def _ends_at(self, node: int, partitions: list[TopicPartition]) -> list[peer.LogEnd | None]:
        if node == self._me:
            return [self.log_end(where) for where in partitions]
        try:
            answer = await self._node.peers.ask(node, peer.FindLogEnds(partitions))
        except ApiError:
            return [None] * len(partitions)
        return [result.log_end for result in answer.results]

    def log_end(self, where: TopicPartition) -> peer.LogEnd | None:
        """How far the log on this node goes; None if there is none that is open."""
        replica = self._node.partitions.replica(*where)
        return None if replica is None else peer.LogEnd(replica.log.last_epoch, replica.log.end_offset)

    # --- helpers

    def _topic(self, where: TopicPartition) -> Topic:
        if not self._exists(where):
            raise UnknownTopicOrPartition()
        return self._node.image.topics_by_id[where[0]]

    def _exists(self, where: TopicPartition) -> bool:
        topic = self._node.image.topics_by_id.get(where[0])
        return topic is not None and 0 <= where[1] < len(topic.partitions)

    def _state(self, where: TopicPartition) -> PartitionState:
        return self._topic(where).partitions[where[1]]

    def _leads(self, where: TopicPartition, node: int) -> bool:
        return self._exists(where) and self._state(where).leader == node

    async def _wait(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait until the condition holds, or the time is over."""
        for _ in range(round(timeout_s / LOOK_S)):
            if condition():
                return
            await asyncio.sleep(LOOK_S)
