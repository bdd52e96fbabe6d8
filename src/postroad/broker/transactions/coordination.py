"""All transaction coordinators of this node: one for each partition of `__transaction_state` it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call
from postroad.broker.internal_topic import InternalTopic
from postroad.broker.partition import Partition
from postroad.broker.replies import Reply, replied
from postroad.broker.transactions.counts import TransactionCounts
from postroad.broker.transactions.hold import Hold
from postroad.broker.transactions.joins import Joins
from postroad.broker.transactions.markers import NO_COORDINATOR, Verdict
from postroad.cluster import keys
from postroad.cluster.image import NO_LEADER
from postroad.cluster.internal_topics import TRANSACTIONS_TOPIC
from postroad.errors import (
    ApiError,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionState,
    NotCoordinator,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)
from postroad.groups.answers import Committed, Outcome
from postroad.now import Now
from postroad.transactions.transaction import PREPARED, Decision, Producer, TransactionState
from postroad.transactions.transaction import Partition as TopicPartition
from postroad.wire import peer

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.broker.transactions.coordinator import Coordinator
    from postroad.transactions.coordinator import Transactions

K = TypeVar("K")
V = TypeVar("V")
Decide = Callable[["Transactions", Now], Decision]
Respond = Callable[[Producer | ApiError | None], bytes]

PARTITIONS_SHARED: Final = 12  # where nodes share a store: the work of coordinators is spread over them
JOIN_WAIT_S: Final = 2.0  # for markers that are under way; another node waits for the answer (`peers`)
REMEMBERED_MAX: Final = 10_000  # epochs and connections, each: those that were used last


class Epochs(NamedTuple):
    """A verdict comes with the epoch of the coordinator that gave it, and with that of its producer."""

    coordinator: int
    producer: int


class TransactionCoordination:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._topic = InternalTopic(node, TRANSACTIONS_TOPIC, self._coordinate, self._loaded)
        self._joins = Joins(node, self._join)
        self.counts = TransactionCounts()
        self.hold = Hold(node)
        self._offsets_spoke: dict[str, int] = {}  # the newest connection that committed offsets for an id
        self._peers_spoke: dict[str, int] = {}  # the newest connection of a node that brought verdicts
        self._completed: dict[int, Epochs] = {}  # by producer: of the last verdict about its offsets

    @property
    def enabled(self) -> bool:
        """Whether this node takes transactional ids."""
        return self._node.settings.kafka.transactions

    @property
    def are_known_to_all(self) -> bool:
        """Whether no node of the cluster runs a version without transactions; once so, it stays so."""
        return self._all_know(keys.TRANSACTIONS_LEVEL)

    @property
    def has_own_epochs(self) -> bool:
        """Whether clients may give each transaction an epoch (`transaction.version` 2)."""
        return self.enabled and self.are_known_to_all

    @property
    def has_pledges(self) -> bool:
        """Whether subscriptions' acknowledgements may be part of transactions: whoever leads a partition next
        must be able to end them."""
        return self.has_own_epochs and self._all_know(keys.PLEDGES_LEVEL)

    @property
    def may_be_shared(self) -> bool:
        """Whether several producers may write in one transaction: whoever coordinates it next must be able to
        end it for all of them."""
        return self.has_own_epochs and self._all_know(keys.SHARED_LEVEL)

    def _all_know(self, level: int) -> bool:
        return not self._node.settings.cluster.store or self._node.image.level >= level

    async def start(self) -> None:
        """Wait for what was loaded, if there ever was a transaction."""
        if TRANSACTIONS_TOPIC in self._node.image.topics:
            await self._topic.start(self._partitions)

    async def ensure(self) -> None:
        """The first transactional id is asked for: make the topic that keeps them. Raises ApiError."""
        if self.enabled and self.are_known_to_all:
            await self._topic.start(self._partitions)

    @property
    def _partitions(self) -> int:
        return PARTITIONS_SHARED if self._node.settings.cluster.store else 1

    @property
    def started(self) -> bool:
        return self._topic.started

    def partition_led(self, partition: Partition) -> None:
        self._topic.partition_led(partition)

    def partition_left(self, partition: Partition) -> None:
        self._topic.partition_left(partition)

    def partition_resigned(self, partition: Partition) -> None:
        self._topic.partition_resigned(partition)

    def _coordinate(self, partition: Partition) -> Coordinator:
        # what is not needed where nobody asks for transactions
        from postroad.broker.transactions.coordinator import Coordinator
        from postroad.broker.transactions.participants import Participants
        from postroad.transactions.coordinator import Transactions

        node = self._node
        evidence = partial(node.evidence.covers, partition)
        return Coordinator(
            partition,
            Transactions(),
            Participants(node),
            node.clock,
            node.turn,
            node.loop,
            evidence,
            self.counts,
        )

    async def _loaded(self, coordinator: Coordinator) -> None:
        coordinator.connections_before = self._node.listener.accepted

    def check(self, transactional_id: str) -> None:
        """Raises what the client should be told of an id that can't be used here."""
        if not transactional_id:
            raise InvalidRequest("A transactional id must not be empty.")
        if not self.enabled:
            raise TransactionalIdAuthorizationFailed(
                "Transactional ids are turned off here (kafka.transactions): produce without "
                "transactional.id, which is idempotent all the same, or turn them on."
            )
        if not self.are_known_to_all:
            raise CoordinatorNotAvailable("Some node of the cluster runs a version without transactions.")

    def leader_of(self, transactional_id: str) -> int:
        """The node that coordinates the id; NO_LEADER while nobody does."""
        topic = self._node.image.topics.get(TRANSACTIONS_TOPIC)
        return NO_LEADER if topic is None else topic.partitions[self._topic.index_of(transactional_id)].leader

    def is_elsewhere(self, transactional_id: str) -> bool:
        """Whether another node coordinates the id."""
        return self.leader_of(transactional_id) not in (self._me, NO_LEADER)

    def find(self, transactional_id: str) -> Coordinator:
        """The id's coordinator, loaded. Raises what the client should be told."""
        self.check(transactional_id)
        coordinator = self._topic.find(transactional_id)
        if coordinator is None:
            if self.is_elsewhere(transactional_id):
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
        try:
            call.access.check_transactional_id(transactional_id)
            coordinator = self.find(transactional_id)
            room, serial = coordinator.transactions, call.connection.serial
            if serial <= coordinator.connections_before and not room.has_spoken(transactional_id):
                # It may be late: the producer may have spoken to the coordinator before this one since then.
                answer.hang_up("the coordinator has moved here: connect again")
                return answer
            room.admit_connection(transactional_id, serial)
        except ApiError as error:
            self.count_fenced(error)
            answer.complete(respond(error))
            return answer
        self.hand_over(answer, transactional_id, decide, respond)
        return answer

    def hand_over(self, answer: Answer, transactional_id: str, decide: Decide, respond: Respond) -> None:
        """As `submit`, whichever connection it came by: its epoch says whether it is late."""

        def reply(result: Producer | ApiError | None) -> None:
            self.count_fenced(result)
            if not answer.abandoned:
                answer.complete(respond(result))

        try:
            coordinator = self.find(transactional_id)
            room = coordinator.transactions
            coordinator.decide(transactional_id, lambda now: decide(room, now), reply)
        except ApiError as error:
            reply(error)

    def count_fenced(self, result: object) -> None:
        """A producer is told this."""
        if isinstance(result, ProducerFenced):
            self.counts.fenced += 1

    # --- what partitions and groups ask

    def verify_here(
        self,
        transactional_id: str,
        who: Producer,
        partitions: Sequence[TopicPartition],
        groups: Sequence[str],
    ) -> None:
        """Raises unless these are part of the producer's open transaction (KIP-890)."""
        room = self.find(transactional_id).transactions
        try:
            missing: Iterable[object] = room.verify(transactional_id, who, partitions)
        except ProducerFenced as error:
            raise InvalidProducerEpoch() from error
        known = room.known[transactional_id]
        joined = known.groups if known.state is TransactionState.ONGOING else ()
        if missing or any(group not in joined for group in groups):
            raise InvalidTransactionState("That was not added to the transaction.")

    async def verify(
        self,
        transactional_id: str,
        who: Producer,
        partitions: Sequence[TopicPartition],
        groups: Sequence[str],
    ) -> None:
        """The same, whichever node coordinates the id."""
        if not self.is_elsewhere(transactional_id):
            self.verify_here(transactional_id, who, partitions, groups)
            return
        question = peer.VerifyTransaction(transactional_id, *who, list(partitions), list(groups))
        await self._node.peers.ask(self.leader_of(transactional_id), question)

    async def join_here(
        self,
        transactional_id: str,
        who: Producer,
        partitions: Sequence[TopicPartition],
        groups: Sequence[str],
    ) -> None:
        """These become part of the producer's transaction, which begins if it has not yet (KIP-890)."""
        coordinator = self.find(transactional_id)
        room = coordinator.transactions

        def ask(reply: Reply) -> None:
            coordinator.decide(
                transactional_id,
                lambda now: room.join(transactional_id, who, partitions, groups, now),
                lambda result: reply(result if isinstance(result, ApiError) else None),
                JOIN_WAIT_S,
            )

        try:
            await replied(ask)
        except ProducerFenced as error:
            raise InvalidProducerEpoch() from error

    async def join(
        self,
        transactional_id: str,
        who: Producer,
        partitions: Sequence[TopicPartition],
        groups: Sequence[str],
    ) -> None:
        """The same, whichever node coordinates the id. What joins in one turn is asked for at once."""
        await self._joins.join(transactional_id, who, partitions, groups)

    async def _join(
        self, transactional_id: str, who: Producer, partitions: list[TopicPartition], groups: list[str]
    ) -> None:
        if not self.is_elsewhere(transactional_id):
            await self.join_here(transactional_id, who, partitions, groups)
            return
        question = peer.JoinTransaction(transactional_id, *who, partitions, groups)
        await self._node.peers.ask(self.leader_of(transactional_id), question)

    def check_offsets(self, transactional_id: str, serial: int) -> None:
        """TxnOffsetCommit came by this connection. Raises InvalidProducerEpoch if a newer one has spoken."""
        if serial < self._offsets_spoke.get(transactional_id, serial):
            raise InvalidProducerEpoch("A newer connection speaks for this transactional id.")

    def admit_offsets(self, transactional_id: str, serial: int) -> None:
        """The same, and it is noted: the id's coordinator has verified that it is in a transaction."""
        self.check_offsets(transactional_id, serial)
        _remember(self._offsets_spoke, transactional_id, serial)

    def admit_peer(self, name: str, serial: int) -> None:
        """A node brings a verdict by this connection. Raises NotCoordinator if it has a newer one by now.

        It has given up the older one, and has sent what came by it again: it would end the next transaction.
        """
        if serial < self._peers_spoke.get(name, serial):
            raise NotCoordinator("This node has a newer connection.")
        _remember(self._peers_spoke, name, serial)

    def complete_offsets(self, group_id: str, verdict: Verdict, reply: Callable[[object], None]) -> None:
        """The group's offsets of a transaction count, or are dropped. `reply` hears an ApiError if they
        can't be. Raises ApiError if this node does not coordinate the group, or if the verdict is late."""
        coordinator = self._node.groups.find(group_id)
        producer_id, epoch, commit, coordinator_epoch, strict = verdict
        if coordinator_epoch != NO_COORDINATOR:
            self._admit_verdict(producer_id, Epochs(coordinator_epoch, epoch))
        groups, partition = coordinator.groups, coordinator.partition

        def decide(_: Now) -> Outcome:
            outcome = groups.complete(group_id, producer_id, epoch, commit, reply, strict=strict)
            if outcome.records:
                return outcome
            # Offsets that could not be written may be in the log all the same, and the next coordinator may
            # find them: nothing is pending only if everything in the log is committed.
            partition.when_committed(partition.log.end_offset, lambda error: reply(error or Committed(())))
            return Outcome()

        coordinator.alone(group_id, decide, reply)

    def _admit_verdict(self, producer_id: int, said: Epochs) -> None:
        """What a former coordinator sent may come late: it would end the next transaction."""
        known = self._completed.get(producer_id, said)
        _remember(self._completed, producer_id, Epochs(*map(max, known, said)))
        if said.coordinator < known.coordinator:
            raise NotCoordinator("A newer coordinator has completed this producer's offsets.")

    def admit_epoch(self, who: Producer) -> None:
        """The producer is about to commit offsets. Raises InvalidProducerEpoch if a verdict about a later
        epoch was heard since its coordinator was asked: nobody would ever end them."""
        known = self._completed.get(who.producer_id)
        if known is not None and who.epoch < known.producer:
            raise InvalidProducerEpoch()

    def transactions_at(
        self, coordinators: Iterable[int], producer_ids: Iterable[int], where: TopicPartition | str
    ) -> list[int]:
        """Which of the producers have a transaction at this partition or group, open or being ended.

        Raises NotCoordinator unless all ids of these partitions of `__transaction_state` are known here."""
        wanted, found = set(producer_ids), []
        for index in coordinators:
            coordinator = self._topic.states.get(index)
            if coordinator is None:
                raise NotCoordinator()
            coordinator.check_loaded()
            for known in coordinator.transactions.known.values():
                is_open = known.state is TransactionState.ONGOING or known.state in PREPARED
                if is_open and known.reaches(where):
                    found += [each for each, _ in known.producers() if each in wanted]
        return found

    async def transactions_anywhere(self, producer_ids: list[int], where: TopicPartition | str) -> set[int]:
        """The same of all ids. Raises ApiError if a coordinator can't say."""
        by_leader: dict[int, list[int]] = {}
        for index, state in enumerate(self._node.image.topic(TRANSACTIONS_TOPIC).partitions):
            by_leader.setdefault(state.leader, []).append(index)
        found = set(self.transactions_at(by_leader.pop(self._me, ()), producer_ids, where))
        for leader, indexes in sorted(by_leader.items()):
            question = peer.FindTransactions(indexes, producer_ids, where)
            found |= set((await self._node.peers.ask(leader, question)).producer_ids)
        return found

    def close(self) -> None:
        for coordinator in self.all():
            coordinator.close()


def _remember(known: dict[K, V], key: K, value: V) -> None:
    """The value is the key's; what was used before all others goes where there is no room for more."""
    known.pop(key, None)
    known[key] = value
    if len(known) > REMEMBERED_MAX:
        del known[next(iter(known))]


def fenced_code(error: ApiError, knows_fenced: bool) -> int:
    """Clients of older versions know a fenced producer as one of an old epoch only."""
    if isinstance(error, ProducerFenced) and not knows_fenced:
        return InvalidProducerEpoch.code
    return error.code
