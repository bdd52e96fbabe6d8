"""`LeaderChecks`: metadata are answered when the leaders that they name are known to live and to lead.

A client whose connection to a leader has ended asks for metadata within a millisecond, before any node has
noticed that the leader died. If it is told of the dead leader once more it waits, librdkafka for a second or
two, long after another one was elected (docs/adr/0018). So each leader is asked first. One that answers has
followed the store as far as this node, so it also knows that it leads. One whose connection ends is
suspected, and the answer waits until the image names another one, for `HOLD_S` at most.

Nobody waits for what may take long: a leader that has been silent for longer than its lease lasts, or a
partition that nobody can be elected for. Nor does anybody wait at a node that is cut off from the store: a
producer that was just sent away would wait on the same connection. Nor in the moment after a node was found
dead, when no successor is named (`orphans`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Final

from postroad.broker.orphans import Orphans
from postroad.broker.peers import Peers
from postroad.cluster.image import Changes, NodeEntry, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.leadership import is_replaceable
from postroad.errors import ApiError, RequestTimedOut
from postroad.wire.peer import FollowStore

if TYPE_CHECKING:
    from postroad.broker.node import Node

ASK_AGAIN_S: Final = 0.05
LOOK_S: Final = 0.02  # between two looks at the image while leaders are asked
HOLD_S: Final = 1.0  # other answers of the connection wait behind this one
ELECTION_S: Final = 1.0  # beyond a lease: until a new leader is known


class LeaderChecks:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._peers = Peers(node)  # its own: answers of a connection wait for each other
        self._patience_s = node.settings.cluster.lease_length_ms / 1000 + ELECTION_S
        self._waiting: dict[int, list[asyncio.Future[bool]]] = {}  # by leader: for the next question to it
        self._asking: dict[int, None] = {}  # leaders that have a question to answer
        self._silent_since: dict[int, float] = {}
        self._changed_s = 0.0  # when the image last changed
        self._orphans = Orphans(node.suspects.is_refusing)

    def changed(self, changes: Changes) -> None:
        """The image has changed."""
        self._changed_s = self._node.loop.time()
        for entry in self._orphans.changed(changes, self._changed_s):
            if entry.id != self._me:
                self._node.tasks.start(self._look_at(entry), "look-at-silent-node")

    async def _look_at(self, entry: NodeEntry) -> None:
        """A node that another one has found dead may have had nothing to do with this one."""
        if await self._node.suspects.is_refused_by(entry):
            self._orphans.found_dead(entry.id)

    def orphans(self) -> Container[tuple[bytes, int]]:
        """Topic id and index of the partitions whose leaders are not named for a moment."""
        return self._orphans.at(self._node.loop.time())

    def silent_nodes(self) -> list[NodeEntry]:
        """Other nodes that are gone, and still offered to clients for a moment."""
        return [entry for entry in self._orphans.silent_at(self._node.loop.time()) if entry.id != self._me]

    def are_needed(self, topics: Iterable[Topic]) -> bool:
        """Whether another node leads any of these partitions, or is about to."""
        if len(self._node.image.nodes) <= 1:
            return False
        leaders = self._leaders(topics)
        return leaders is None or bool(leaders - {self._me})

    async def wait(self, find: Callable[[], Iterable[Topic]]) -> None:
        """Return when the leaders of the topics live and know that they lead; bounded."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                while self._hears_of_elections() and not await self._are_known(find):
                    with contextlib.suppress(RequestTimedOut):
                        await self._node.topics.reach(self._node.image.revision + 1, ASK_AGAIN_S)

    def _hears_of_elections(self) -> bool:
        """False for a node that is cut off from the store: its lease has ended, and waiting is in vain."""
        return self._node.registration.is_current(self._node.clock.monotonic_ms())

    async def _are_known(self, find: Callable[[], Iterable[Topic]]) -> bool:
        leaders = self._leaders(find())
        if leaders is None:
            return False
        asked = [self._ask(leader) for leader in sorted(leaders - {self._me}) if self._may_answer(leader)]
        revision = self._node.image.revision
        while asked and not all(answer.done() for answer in asked):
            await asyncio.wait(asked, timeout=LOOK_S)
            if self._node.image.revision != revision:
                break
        return all(answer.done() and answer.result() for answer in asked) and self._leaders(find()) == leaders

    def _leaders(self, topics: Iterable[Topic]) -> set[int] | None:
        """Those that metadata would name; None if some partition is about to get another one."""
        nodes, is_moving, orphans = self._node.image.nodes, self._node.handover.is_moving, self.orphans()
        leaders: set[int] = set()
        for topic in topics:
            for index, state in enumerate(topic.partitions):
                if (topic.id, index) in orphans:
                    continue
                if state.leader in nodes:
                    leaders.add(state.leader)
                elif self._is_elected_soon(state):
                    return None
                if state.leader == self._me and is_moving(topic.id, index):
                    return None
        return leaders

    def _is_elected_soon(self, state: PartitionState) -> bool:
        """An election follows a change of the store, if somebody can be elected."""
        now_s = self._node.loop.time()
        if now_s - self._changed_s >= self._patience_s or self._orphans.has_just_died(state.leader, now_s):
            return False
        return is_replaceable(self._node.image, state)

    def _may_answer(self, leader: int) -> bool:
        """False for a leader that has been silent for long: it is asked all the same."""
        now_s = self._node.loop.time()
        if now_s - self._silent_since.get(leader, now_s) < self._patience_s:
            return True
        if leader not in self._asking:
            self._ask(leader)
        return False

    def _ask(self, leader: int) -> asyncio.Future[bool]:
        """Whether the leader answers a question that is sent from now on. It gets one at a time."""
        answer = self._node.loop.create_future()
        self._waiting.setdefault(leader, []).append(answer)
        if leader not in self._asking:
            self._asking[leader] = None
            self._node.tasks.start(self._ask_on(leader), "check-leader")
        return answer

    async def _ask_on(self, leader: int) -> None:
        """Until nobody waits for an answer."""
        while waiting := self._waiting.pop(leader, None):
            answers = await self._answers(leader)
            for future in waiting:
                future.set_result(answers)
        del self._asking[leader]

    async def _answers(self, leader: int) -> bool:
        self._silent_since.setdefault(leader, self._node.loop.time())
        try:
            answer = await self._peers.ask(leader, FollowStore(self._node.image.revision))
            await self._node.topics.reach(answer.revision, HOLD_S)
        except ApiError:
            self._node.suspects.suspect(leader)
            return False
        self._silent_since.pop(leader, None)
        return True

    def close(self) -> None:
        self._peers.close()
