"""Bringing a verdict to all that a transaction has reached: partitions of topics, their ledgers, and groups.

A partition gets a marker; a ledger turns what was accepted in the transaction into what is done, or releases
it; a group turns the transaction's offsets into committed ones, or drops them. What another node leads or
coordinates is asked of it: markers by WriteTxnMarkers, ledgers and groups by questions between nodes. Each is
tried until it has been done and is committed: the verdict stands, and nobody may forget it.
What does not exist any more counts as done.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from postroad.broker.subscriptions.pledges import end_pledges
from postroad.broker.transactions.markers import Verdict, mark
from postroad.cluster.ids import topic_of_pledges
from postroad.cluster.image import NO_LEADER
from postroad.errors import ApiError, InvalidProducerEpoch, TransactionCoordinatorFenced, by_code
from postroad.transactions.transaction import Partition as TopicPartition
from postroad.transactions.transaction import Producer, Transaction, TransactionState
from postroad.wire import peer
from postroad.wire.messages import write_txn_markers as codec

if TYPE_CHECKING:
    from postroad.broker.node import Node

RETRY_S: Final = 0.1
# A marker takes 13 microseconds, and a job of 400 tasks in 100 partitions has 40,000: others get their turn.
MARKERS_A_TURN: Final = 100

log = logging.getLogger(__name__)


class Participants:
    def __init__(self, node: Node) -> None:
        self._node = node

    def end(self, transaction: Transaction, coordinator_epoch: int, done: Callable[[], None]) -> Endings:
        """Write the verdict to all of them; `done` is called when all are committed, never before this
        returns."""
        endings = Endings(self._node, transaction, verdicts(transaction, coordinator_epoch), done)
        self._node.loop.call_soon(endings.begin)
        return endings


def verdicts(transaction: Transaction, coordinator_epoch: int) -> list[Verdict]:
    """How the transaction ends, for each of the producers that write in it."""
    commit = transaction.state is TransactionState.PREPARE_COMMIT
    if transaction.writers is None or not transaction.is_shared:
        strict = transaction.version > 1
        return [Verdict(transaction.producer_id, transaction.epoch, commit, coordinator_epoch, strict)]
    kept = set(transaction.writers.kept)
    return [
        Verdict(producer_id, epoch + 1, commit and producer_id in kept, coordinator_epoch, strict=True)
        for producer_id, epoch in transaction.writers.open
    ]


class Endings:
    """One transaction's verdicts on their way."""

    def __init__(
        self, node: Node, transaction: Transaction, verdicts: list[Verdict], done: Callable[[], None]
    ) -> None:
        self._loop = node.loop
        self._endings = [Ending(node, transaction, verdict, self._one_done) for verdict in verdicts]
        self._waiting = deque(self._endings)
        self._markers = max(1, len(transaction.places()))  # of each producer
        self._left = len(verdicts)
        self._done = done

    def begin(self) -> None:
        """Some of them in each turn of the loop."""
        begun = 0
        while self._waiting and begun < MARKERS_A_TURN:
            self._waiting.popleft().begin()
            begun += self._markers
        if self._waiting:
            self._loop.call_soon(self.begin)

    def cancel(self) -> None:
        self._waiting.clear()
        for ending in self._endings:
            ending.cancel()

    def _one_done(self) -> None:
        self._left -= 1
        if not self._left:
            self._done()


class Ending:
    """One producer's verdict on its way."""

    def __init__(
        self, node: Node, transaction: Transaction, verdict: Verdict, done: Callable[[], None]
    ) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._transaction = transaction
        self._verdict = verdict
        self._done = done
        self._left = 0
        self._cancelled = False
        self._timers: set[asyncio.TimerHandle] = set()

    def begin(self) -> None:
        if self._cancelled:
            return
        reached, groups = sorted(self._transaction.places()), self._transaction.groups
        self._left = 1 + len(reached) + len(groups)
        self._mark([where for where in reached if topic_of_pledges(where[0]) is None])
        self._end_pledges([(topic, index) for named, index in reached if (topic := topic_of_pledges(named))])
        for group_id in groups:
            self._complete_offsets(group_id)
        self._finish_one()

    def cancel(self) -> None:
        self._cancelled = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    # --- partitions

    def _by_leader(self, places: list[TopicPartition]) -> list[tuple[int, dict[TopicPartition, str]]]:
        """The places with the names of their topics. What does not exist any more counts as done."""
        by_leader: dict[int, dict[TopicPartition, str]] = {}
        for where in places:
            topic = self._node.image.topics_by_id.get(where[0])
            if topic is None or where[1] >= len(topic.partitions):
                self._finish_one()
            else:
                by_leader.setdefault(topic.partitions[where[1]].leader, {})[where] = topic.name
        return sorted(by_leader.items(), key=itemgetter(0))

    def _mark(self, places: list[TopicPartition]) -> None:
        for leader, found in self._by_leader(places):
            if leader in (self._me, NO_LEADER):
                for where in found:
                    self._mark_here(where)
            else:
                self._start(self._mark_there(leader, found), f"markers-{leader}")

    def _mark_here(self, where: TopicPartition) -> None:
        try:
            mark(self._node, where, self._verdict, partial(self._marked, where))
        except ApiError as error:
            self._marked(where, error)

    async def _mark_there(self, leader: int, names: dict[TopicPartition, str]) -> None:
        topics: dict[str, list[int]] = {}
        for where, name in names.items():
            topics.setdefault(name, []).append(where[1])
        verdict = self._verdict
        marker = codec.WritableTxnMarker(
            producer_id=verdict.producer_id,
            producer_epoch=verdict.epoch,
            transaction_result=verdict.commit,
            topics=[codec.WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
            coordinator_epoch=verdict.coordinator_epoch,
            transaction_version=2 if verdict.strict else 1,
        )
        request = codec.WriteTxnMarkersRequest(markers=[marker])
        try:
            answer = await self._node.peers.call(leader, codec, request)
            codes = {
                (topic.name, each.partition_index): each.error_code
                for result in answer.markers
                for topic in result.topics
                for each in topic.partitions
            }
        except ApiError as error:
            codes = dict.fromkeys(((name, where[1]) for where, name in names.items()), error.code)
        left = []
        for where, name in names.items():
            code = codes.get((name, where[1]), -1)
            if self._has_ended(where, by_code(code) if code else None):
                self._finish_one()
            else:
                left.append(where)
        if left:  # together, as they were: a dead leader is asked once for all that it led
            self._again(self._mark, left)

    def _marked(self, where: TopicPartition, error: ApiError | None) -> None:
        if self._has_ended(where, error):
            self._finish_one()
        else:
            self._again(self._mark, [where])

    def _has_ended(self, where: TopicPartition, error: ApiError | None) -> bool:
        """Whether the transaction has ended there, or else it is to be tried again."""
        if isinstance(error, (InvalidProducerEpoch, TransactionCoordinatorFenced)):
            log.warning("the marker for %s-%d is late: %s", where[0].hex(), where[1], error)
            return True  # the partition knows of a later transaction
        return error is None

    # --- ledgers

    @property
    def _ended(self) -> Producer:
        """The producer's transactions below this epoch have ended."""
        return Producer(self._verdict.producer_id, self._verdict.epoch + (not self._verdict.strict))

    def _end_pledges(self, places: list[TopicPartition]) -> None:
        for leader, found in self._by_leader(places):
            if leader in (self._me, NO_LEADER):
                for where in found:
                    self._end_pledges_here(where)
            else:
                self._start(self._end_pledges_there(leader, list(found)), f"pledges-{leader}")

    def _end_pledges_here(self, where: TopicPartition) -> None:
        done = partial(self._pledges_ended, where)
        try:
            end_pledges(self._node, where, self._ended, self._verdict.commit, done)
        except ApiError as error:
            done(error)

    async def _end_pledges_there(self, leader: int, places: list[TopicPartition]) -> None:
        question = peer.EndPledges(places, *self._ended, self._verdict.commit)
        try:
            answer = await self._node.peers.ask(leader, question)
            codes = [result.error_code for result in answer.results]
        except ApiError as error:
            codes = [error.code] * len(places)
        for where, code in zip(places, codes, strict=True):
            self._pledges_ended(where, by_code(code) if code else None)

    def _pledges_ended(self, where: TopicPartition, error: ApiError | None) -> None:
        if error is None:
            self._finish_one()
        else:
            self._again(self._end_pledges, [where])

    # --- groups

    def _complete_offsets(self, group_id: str) -> None:
        node, verdict = self._node, self._verdict
        if node.groups.is_elsewhere(group_id):
            self._start(self._complete_there(group_id), "transaction-offsets")
            return
        reply = partial(self._offsets_completed, group_id)
        try:
            node.transactions.complete_offsets(group_id, verdict, reply)
        except ApiError as error:
            reply(error)

    async def _complete_there(self, group_id: str) -> None:
        node, verdict = self._node, self._verdict
        question = peer.CompleteOffsets(group_id, *verdict)
        try:
            await node.peers.ask(node.groups.leader_of(group_id), question)
        except ApiError as error:
            self._offsets_completed(group_id, error)
        else:
            self._offsets_completed(group_id, None)

    def _offsets_completed(self, group_id: str, answer: object) -> None:
        if isinstance(answer, ApiError):
            self._again(self._complete_offsets, group_id)
        else:
            self._finish_one()

    # --- the end

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._node.tasks.start(work, name)

    def _again(self, call: Callable[..., None], what: object) -> None:
        if not self._cancelled:
            timer: asyncio.TimerHandle

            def due() -> None:
                self._timers.discard(timer)
                call(what)

            timer = self._node.loop.call_later(RETRY_S, due)
            self._timers.add(timer)

    def _finish_one(self) -> None:
        self._left -= 1
        if not self._left and not self._cancelled:
            self._done()
