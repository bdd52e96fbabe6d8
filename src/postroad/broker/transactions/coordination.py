"""All transaction coordinators of this node: one for each partition of `__transaction_state` it leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call
from postroad.broker.internal_topic import InternalTopic
from postroad.broker.partition import Partition
from postroad.broker.transactions.coordinator import Coordinator
from postroad.broker.transactions.participants import Participants
from postroad.cluster.image import NO_LEADER
from postroad.cluster.internal_topics import TRANSACTIONS_TOPIC
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionState,
    NotCoordinator,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)
from postroad.now import Now
from postroad.transactions.coordinator import Transactions
from postroad.transactions.transaction import Decision, Producer
from postroad.wire.batch import PRODUCER_EPOCH, PRODUCER_ID, Fields

if TYPE_CHECKING:
    from postroad.broker.node import Node

Decide = Callable[[Transactions, Now], Decision]
Respond = Callable[[Producer | ApiError | None], bytes]


class TransactionCoordination:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._topic = InternalTopic(node, TRANSACTIONS_TOPIC, self._coordinate, self._loaded)
        self._participants = Participants(node)
        self._offsets_spoke: dict[str, int] = {}  # the newest connection that committed offsets for an id

    @property
    def enabled(self) -> bool:
        """Only where it is asked for; nodes that share a store can't bring verdicts to each other yet."""
        return self._node.settings.kafka.transactions and not self._node.settings.cluster.store

    async def start(self) -> None:
        """Wait for what was loaded, if there ever was a transaction."""
        if TRANSACTIONS_TOPIC in self._node.image.topics:
            await self._topic.start(1)

    async def ensure(self) -> None:
        """The first transactional id is asked for: make the topic that keeps them. Raises ApiError."""
        if self.enabled:
            await self._topic.start(1)

    @property
    def started(self) -> bool:
        return self._topic.started

    def partition_led(self, partition: Partition) -> None:
        self._topic.partition_led(partition)

    def partition_resigned(self, partition: Partition) -> None:
        self._topic.partition_resigned(partition)

    def _coordinate(self, partition: Partition) -> Coordinator:
        node = self._node
        return Coordinator(partition, Transactions(), self._participants, node.clock, node.turn, node.loop)

    async def _loaded(self, coordinator: Coordinator) -> None:
        """Nothing else is to be done."""

    def check(self, transactional_id: str) -> None:
        """Raises what the client should be told of an id that can't be used here."""
        if not transactional_id:
            raise InvalidRequest("A transactional id must not be empty.")
        if not self.enabled:
            raise TransactionalIdAuthorizationFailed()

    def leader_of(self, transactional_id: str) -> int:
        """The node that coordinates the id; NO_LEADER while nobody does."""
        topic = self._node.image.topics.get(TRANSACTIONS_TOPIC)
        return NO_LEADER if topic is None else topic.partitions[self._topic.index_of(transactional_id)].leader

    def find(self, transactional_id: str) -> Coordinator:
        """The id's coordinator, loaded. Raises what the client should be told."""
        self.check(transactional_id)
        coordinator = self._topic.find(transactional_id)
        if coordinator is None:
            if self.leader_of(transactional_id) not in (self._me, NO_LEADER):
                raise NotCoordinator()
            raise CoordinatorNotAvailable(f"The id's partition of {TRANSACTIONS_TOPIC} is offline.")
        coordinator.check_loaded()
        return coordinator

    def all(self) -> list[Coordinator]:
        return list(self._topic.states.values())

    def submit(self, call: Call, transactional_id: str, decide: Decide, respond: Respond) -> Answer:
        """Park the request and hand it to the id's coordinator; `respond` makes the body of its answer.

        What comes by an older connection than one that has spoken for the id is late, and refused.
        """
        answer = call.park()

        def reply(result: Producer | ApiError | None) -> None:
            if not answer.abandoned:
                answer.complete(respond(result))

        try:
            coordinator = self.find(transactional_id)
            coordinator.transactions.admit_connection(transactional_id, call.connection.serial)
            room = coordinator.transactions
            coordinator.decide(transactional_id, lambda now: decide(room, now), reply)
        except ApiError as error:
            reply(error)
        return answer

    def verify(self, transactional_id: str, header: Fields, partition: Partition) -> None:
        """A batch is about to open a transaction in the partition. Raises unless it is part of one (KIP-890).

        Produce says INVALID_PRODUCER_EPOCH to whoever was fenced.
        """
        room = self.find(transactional_id).transactions
        who = Producer(header[PRODUCER_ID], header[PRODUCER_EPOCH])
        try:
            missing = room.verify(transactional_id, who, [(partition.topic_id, partition.index)])
        except ProducerFenced as error:
            raise InvalidProducerEpoch() from error
        except ConcurrentTransactions as error:
            raise InvalidTransactionState("The transaction is ending.") from error
        if missing:
            raise InvalidTransactionState("The partition was not added to the transaction.")

    def verify_offsets(self, transactional_id: str, who: Producer, group_id: str, serial: int) -> None:
        """Raises unless the group is part of the producer's open transaction."""
        room = self.find(transactional_id).transactions
        if serial < self._offsets_spoke.get(transactional_id, serial):
            raise InvalidProducerEpoch("A newer connection speaks for this transactional id.")
        self._offsets_spoke[transactional_id] = serial
        try:
            room.verify(transactional_id, who, [])
        except ProducerFenced as error:
            raise InvalidProducerEpoch() from error
        if group_id not in room.known[transactional_id].groups:
            raise InvalidTransactionState("The group was not added to the transaction.")

    def close(self) -> None:
        for coordinator in self.all():
            coordinator.close()


def fenced_code(error: ApiError, knows_fenced: bool) -> int:
    """Clients of older versions know a fenced producer as one of an old epoch only."""
    if isinstance(error, ProducerFenced) and not knows_fenced:
        return InvalidProducerEpoch.code
    return error.code
