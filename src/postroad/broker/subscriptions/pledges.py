"""Acknowledgements that are part of a transaction: what they accept is done if and only if that commits.

*In.* The ledger of every partition that a request names joins the transaction at its coordinator, with one
question (KIP-890): from then on its end comes here, whatever happens. Then the messages are pledged
(`queues.pledges`), which is durable before it is answered. A coordinator's answer may be late: if the end has
come meanwhile nobody would ever end what is pledged now, so it is refused (`AskedPledge`).

*Out.* The end of a transaction comes to the leader of each of these partitions (`transactions.participants`).
Pledges of all subscriptions there become done, or are released. An end is repeated until everything is
committed; one that finds nothing pledged changes nothing.

Transactions name the ledgers of partitions by an id of their own (`pledges_id`): a partition whose messages
are taken gets no marker in its log for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from postroad.broker.access import Access
from postroad.broker.partitions import TopicPartition
from postroad.broker.parts import HasEvidence, HasImage, HasPartitions, HasSubscriptions, HasTransactions
from postroad.broker.replies import Reply
from postroad.broker.subscriptions.acknowledgements import find_queue
from postroad.broker.subscriptions.asked_pledge import AskedPledge
from postroad.cluster.ids import pledges_id
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidRecordState,
    InvalidRequest,
    TransactionalIdAuthorizationFailed,
    TryAgain,
    UnsupportedVersion,
)
from postroad.queues.share_partition import AckBatch
from postroad.queues.update import Key
from postroad.transactions.transaction import Producer
from postroad.wire.share_requests import InTransaction

OFF: Final = "Acknowledgements in transactions need transactions: the setting kafka.transactions is off here."
OLD: Final = "Acknowledgements in transactions are possible when all nodes run a version that knows them."
AT_MOST_ONCE: Final = (
    "The subscription delivers at most once: its messages are done when they are delivered, so none is left "
    "to accept in a transaction."
)


class Uses(HasEvidence, HasSubscriptions, HasTransactions, Protocol):
    """What pledges use of the node."""


class UsesForEnds(HasEvidence, HasImage, HasPartitions, HasSubscriptions, Protocol):
    """What the ends of transactions use of the node."""


def check_possible(node: HasTransactions, access: Access, transaction: InTransaction) -> None:
    """Raises what the client should be told where no acknowledgement can be part of this transaction."""
    if not node.transactions.enabled:
        raise TransactionalIdAuthorizationFailed(OFF)
    if not node.transactions.has_pledges:
        raise UnsupportedVersion(OLD)
    access.check_transactional_id(transaction.transactional_id)
    node.transactions.check(transaction.transactional_id)


class Pledges:
    """The acknowledgements of one request: each partition's are taken as a whole, or not at all."""

    def __init__(
        self, node: Uses, access: Access, group: str, member: str, transaction: InTransaction
    ) -> None:
        self._node = node
        self._access = access
        self._group = group
        self._member = member
        self._name = transaction.transactional_id
        self._who = Producer(transaction.producer_id, transaction.epoch)

    async def take(
        self, named: Mapping[TopicPartition, Sequence[AckBatch]]
    ) -> dict[TopicPartition, ApiError | None]:
        """For each partition None when its pledges are durable, or why nothing was changed."""
        errors: dict[TopicPartition, ApiError | None] = {}
        asked: dict[TopicPartition, AskedPledge] = {}
        for where in named:
            try:
                asked[where] = self._ask(where)
            except ApiError as error:
                errors[where] = error
        try:
            refusal = await self._join(asked) if asked else None
            waiting = {where: self._begin(each, named[where], refusal) for where, each in asked.items()}
        finally:
            for each in asked.values():
                each.forget()
        for where, answered in waiting.items():
            errors[where] = await answered
        return errors

    def _ask(self, where: TopicPartition) -> AskedPledge:
        queue = find_queue(self._node, self._access, self._group, where)
        if queue.core.settings.at_most_once:
            raise InvalidRequest(AT_MOST_ONCE)
        return AskedPledge(queue, self._who)

    async def _join(self, asked: Mapping[TopicPartition, AskedPledge]) -> ApiError | None:
        """The partitions are part of the transaction, or why not."""
        try:
            ledgers = [(pledges_id(topic_id), index) for topic_id, index in asked]
            await self._node.transactions.join(self._name, self._who, ledgers, ())
        except ConcurrentTransactions as error:
            return error
        except TryAgain as error:  # another node's, perhaps: nothing is wrong with the partition's leader
            return CoordinatorNotAvailable(f"The transaction's coordinator can't say now: {error}")
        except ApiError as error:
            return error
        return None

    def _begin(
        self, asked: AskedPledge, batches: Sequence[AckBatch], refusal: ApiError | None
    ) -> asyncio.Future[ApiError | None]:
        """Pledge them; the future hears when that is durable."""
        answered: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()

        def reply(error: ApiError | None) -> None:
            if not answered.done():
                answered.set_result(error)

        try:
            if refusal is not None:
                raise refusal.with_traceback(None)
            if asked.has_ended:
                raise InvalidProducerEpoch("The transaction has ended.")
            if asked.queue.closed:  # locks are gone with a queue
                raise InvalidRecordState
            self._node.evidence.check(asked.queue.partition)
        except ApiError as error:
            reply(error)
        else:
            asked.queue.pledge(self._member, batches, self._who, reply)
        return answered


# --- the end of a transaction


def end_pledges(node: UsesForEnds, where: TopicPartition, who: Producer, commit: bool, done: Reply) -> None:
    """The producer's transactions below this epoch have ended; `done` is called when that is committed for
    all that was pledged in them at the partition, or with why it can't be.

    Raises ApiError if this node can't say what is pledged there."""
    messages = node.partitions.lead(*where)
    ledgers = _ledgers_at(node, where)
    pledged: list[Key] = []
    for key in ledgers:
        queue = node.subscriptions.queue_in_use(key)
        if queue is not None:
            queue.note_end(who)
        ledger = node.subscriptions.leaders.find(key)
        under_way = queue is not None and queue.is_pledging(who.producer_id)
        if under_way or (ledger is not None and ledger.pledges.of(*who)):
            pledged.append(key)
    node.evidence.check(messages)  # only the partition's leader knows what is pledged there
    if ledgers and messages.ledger is not None and messages.ledger.log.failed is not None:
        raise messages.ledger.log.failed.with_traceback(None)  # nobody knows what it has written
    ending = _Ending(len(pledged), done)
    for key in pledged:
        try:
            queue = node.subscriptions.queue(*key)
            if queue is None:
                raise CoordinatorNotAvailable("The subscription's state of this partition is changing.")
            queue.end_transactions(who, commit, ending.ended)
        except ApiError as error:
            ending.ended(error)
    ending.ended(None)


def _ledgers_at(node: UsesForEnds, where: TopicPartition) -> list[Key]:
    """The ledgers of a partition that is led here. Raises CoordinatorLoadInProgress until they are known."""
    topic = node.image.topics_by_id.get(where[0])
    if topic is None or where[1] >= len(topic.partitions) or not topic.partitions[where[1]].ledger:
        return []
    found = node.subscriptions.leaders.at(*where)
    if found is None:
        raise CoordinatorLoadInProgress
    return found


class _Ending:
    """The end of a transaction on its way to the ledgers of one partition."""

    __slots__ = ("_done", "_error", "_left")

    def __init__(self, ledgers: int, done: Reply) -> None:
        self._left = ledgers + 1
        self._done = done
        self._error: ApiError | None = None

    def ended(self, error: ApiError | None) -> None:
        """One thing less to wait for."""
        self._error = self._error or error
        self._left -= 1
        if not self._left:
            self._done(self._error)


def open_pledges(node: UsesForEnds) -> Iterator[tuple[TopicPartition, dict[int, int]]]:
    """The partitions that are led here and have pledges: of each the producers, and their lowest epochs."""
    for messages in list(node.partitions):
        if messages.ledger is None or not messages.leads:
            continue
        where, found = (messages.topic_id, messages.index), dict[int, int]()
        for key in node.subscriptions.leaders.at(*where) or ():
            ledger = node.subscriptions.leaders.find(key)
            for pledged in () if ledger is None or not ledger.pledges.rows else ledger.pledges:
                known = found.get(pledged.producer_id, pledged.epoch)
                found[pledged.producer_id] = min(known, pledged.epoch)
        if found:
            yield where, found
