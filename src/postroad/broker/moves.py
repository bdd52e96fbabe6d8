"""What operators ask for about where partitions lie: move them, drain a node, remove one.

Any node decides, by compare-and-set; the controller then sees it through (`cluster.reassignment`). Nothing
here waits for messages to be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from postroad.broker.partitions import TopicPartition
from postroad.cluster import membership, reassignment
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.errors import ApiError, InvalidRequest, RequestTimedOut

if TYPE_CHECKING:
    from postroad.broker.node import Node

COMMITS_MAX: Final = 1000  # 10,000 partitions are 100 keys of each topic, and others may get in between

Named = tuple[str, int]
"""A topic's name and a partition's index."""


class Moves:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id

    async def reassign(self, wanted: Mapping[Named, Sequence[int] | None]) -> dict[Named, ApiError | None]:
        """Begin to move partitions to these replicas; None: cancel a move. Returns what was refused."""
        outcomes: dict[Named, ApiError | None] = {}
        moves: dict[TopicPartition, Sequence[int] | None] = {}
        for (name, index), replicas in wanted.items():
            try:
                topic = self._node.image.topic(name)
                reassignment.check(self._node.image, topic, index, replicas)
                moves[topic.id, index] = replicas
                outcomes[name, index] = None
            except ApiError as error:
                outcomes[name, index] = error
        await self._commit_all(lambda image: reassignment.reassign(image, self._me, moves))
        return outcomes

    async def drain(self, node: int) -> None:
        """The node is to be emptied, and gets nothing new. Raises InvalidRequest if there is no such node."""
        self._check_known(node)
        await self._node.topics.decide(lambda image: membership.drain(image, node), current=True)

    async def cancel_drain(self, node: int) -> None:
        """The node may have partitions again, and keeps those that have not left it yet."""
        self._check_known(node)
        await self._node.topics.decide(lambda image: membership.cancel_drain(image, node), current=True)
        await self._commit_all(lambda image: reassignment.cancel_of(image, self._me, node))

    async def remove(self, node: int) -> None:
        """Forget a node that is stopped and holds nothing. Raises what keeps it."""
        self._check_known(node)
        await self._node.topics.decide(lambda image: membership.remove(image, node))

    def _check_known(self, node: int) -> None:
        image = self._node.image
        if node not in image.directories and node not in image.nodes:
            raise InvalidRequest(f"There is no node {node} in this cluster.")

    async def _commit_all(self, make: Callable[[Image], list[Decision]]) -> None:
        """Commit until there is nothing left to decide."""
        for _ in range(COMMITS_MAX):
            if not make(self._node.image):
                return
            await self._node.topics.decide(lambda image: next(iter(make(image)), membership.NOTHING))
        raise RequestTimedOut("Partitions changed under every attempt. Try again.")
