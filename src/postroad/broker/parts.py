"""The parts of a node that handlers ask for, each as a protocol.

A handler declares the parts that it uses (`Uses`) and sees no others: its signature says what it can touch,
and mypy holds it to that. `Node` has all of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from postroad.broker.damaged_copies import DamagedCopies
    from postroad.broker.data_directory import DataDirectory
    from postroad.broker.dispatch import Dispatcher
    from postroad.broker.elections import Elections
    from postroad.broker.evidence import Evidence
    from postroad.broker.fetch_sessions import FetchSessions
    from postroad.broker.flusher import Flusher
    from postroad.broker.groups.coordination import GroupCoordination
    from postroad.broker.handover import Handover
    from postroad.broker.housekeeping import Housekeeping
    from postroad.broker.leader_checks import LeaderChecks
    from postroad.broker.moves import Moves
    from postroad.broker.partitions import Partitions
    from postroad.broker.producer_ids import ProducerIds
    from postroad.broker.registration import Registration
    from postroad.broker.replica_sessions import ReplicaSessions
    from postroad.broker.runtime import Runtime
    from postroad.broker.security import Security
    from postroad.broker.subscriptions.subscriptions import Subscriptions
    from postroad.broker.tasks import Tasks
    from postroad.broker.topic_changes import TopicChanges
    from postroad.broker.topics import Topics
    from postroad.broker.transactions.coordination import TransactionCoordination
    from postroad.broker.turn import Turn
    from postroad.cluster.image import Image
    from postroad.cluster.store import Store
    from postroad.config import Loaded, Settings
    from postroad.system.clock import Clock
    from postroad.system.workers import Workers


class HasAdvertisedPort(Protocol):
    @property
    def advertised_port(self) -> int: ...


class HasClock(Protocol):
    @property
    def clock(self) -> Clock: ...


class HasColdWorkers(Protocol):
    @property
    def cold_workers(self) -> Workers: ...


class HasDamagedCopies(Protocol):
    @property
    def damaged_copies(self) -> DamagedCopies: ...


class HasDirectory(Protocol):
    @property
    def directory(self) -> DataDirectory: ...


class HasDispatcher(Protocol):
    @property
    def dispatcher(self) -> Dispatcher: ...


class HasElections(Protocol):
    @property
    def elections(self) -> Elections: ...


class HasEvidence(Protocol):
    @property
    def evidence(self) -> Evidence: ...


class HasFetchSessions(Protocol):
    @property
    def fetch_sessions(self) -> FetchSessions: ...


class HasFlusher(Protocol):
    @property
    def flusher(self) -> Flusher: ...


class HasGroups(Protocol):
    @property
    def groups(self) -> GroupCoordination: ...


class HasHandover(Protocol):
    @property
    def handover(self) -> Handover: ...


class HasHousekeeping(Protocol):
    @property
    def housekeeping(self) -> Housekeeping: ...


class HasImage(Protocol):
    @property
    def image(self) -> Image: ...


class HasLoaded(Protocol):
    @property
    def loaded(self) -> Loaded: ...


class HasLoop(Protocol):
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...


class HasLeaderChecks(Protocol):
    @property
    def leader_checks(self) -> LeaderChecks: ...


class HasMoves(Protocol):
    @property
    def moves(self) -> Moves: ...


class HasPartitions(Protocol):
    @property
    def partitions(self) -> Partitions: ...


class HasProducerIds(Protocol):
    @property
    def producer_ids(self) -> ProducerIds: ...


class HasRegistration(Protocol):
    @property
    def registration(self) -> Registration: ...


class HasReplicaSessions(Protocol):
    @property
    def replica_sessions(self) -> ReplicaSessions: ...


class HasRuntime(Protocol):
    @property
    def runtime(self) -> Runtime: ...


class HasSecurity(Protocol):
    @property
    def security(self) -> Security: ...


class HasSettings(Protocol):
    @property
    def settings(self) -> Settings: ...


class HasStore(Protocol):
    @property
    def store(self) -> Store: ...


class HasSubscriptions(Protocol):
    @property
    def subscriptions(self) -> Subscriptions: ...


class HasTasks(Protocol):
    @property
    def tasks(self) -> Tasks: ...


class HasTopicChanges(Protocol):
    @property
    def topic_changes(self) -> TopicChanges: ...


class HasTopics(Protocol):
    @property
    def topics(self) -> Topics: ...


class HasTransactions(Protocol):
    @property
    def transactions(self) -> TransactionCoordination: ...


class HasTurn(Protocol):
    @property
    def turn(self) -> Turn: ...
