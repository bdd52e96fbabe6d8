"""A node: all parts of the shell put together, started in order and stopped in reverse.

Start: take the data directory → open the coordination store → recover the logs → load the groups →
accept clients. Stop: refuse new clients → answer what is under way → close the logs (written and
synced) → leave the clean-shutdown marker. Whatever goes wrong in between costs only time: without
the marker the next start looks at the tails of the logs.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from postroad import process
from postroad.broker import api
from postroad.broker.catch_up import CatchUp
from postroad.broker.controlling import Controlling
from postroad.broker.damaged_copies import DamagedCopies
from postroad.broker.data_directory import DataDirectory
from postroad.broker.descriptors import Descriptors
from postroad.broker.dispatch import Dispatcher
from postroad.broker.elections import Elections
from postroad.broker.evidence import Evidence
from postroad.broker.fetch_sessions import FetchSessions
from postroad.broker.flusher import Flusher
from postroad.broker.groups.coordination import GroupCoordination
from postroad.broker.handover import Handover
from postroad.broker.housekeeping import Housekeeping
from postroad.broker.joining import Joining, patiently
from postroad.broker.leader_checks import LeaderChecks
from postroad.broker.listener import Listener
from postroad.broker.moves import Moves
from postroad.broker.partition import Partition
from postroad.broker.partitions import Partitions
from postroad.broker.peers import Peers
from postroad.broker.producer_ids import ProducerIds
from postroad.broker.quotas import Quotas
from postroad.broker.registration import Registration
from postroad.broker.replica_sessions import ReplicaSessions
from postroad.broker.replicas import Replicas
from postroad.broker.roles import Roles
from postroad.broker.runtime import Runtime, SystemRuntime
from postroad.broker.security import Security
from postroad.broker.strays import Strays
from postroad.broker.subscriptions.subscriptions import Subscriptions
from postroad.broker.suspects import Suspects
from postroad.broker.tasks import Tasks
from postroad.broker.topic_changes import TopicChanges
from postroad.broker.topics import Topics
from postroad.broker.transactions.coordination import TransactionCoordination
from postroad.broker.transactions.hanging import HangingTransactions
from postroad.broker.turn import Turn
from postroad.broker.widening import Widening
from postroad.cluster.controller import Decision
from postroad.cluster.ids import id_text, make_id
from postroad.cluster.image import Changes, Image, NodeEntry
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.cluster.keys import STARTING
from postroad.cluster.store import Store
from postroad.config import Loaded
from postroad.config.listeners import DEFAULT_NAME
from postroad.errors import ConfigurationError

if TYPE_CHECKING:
    from postroad.broker.certificates import Certificates
    from postroad.broker.connection import Connection
    from postroad.broker.handshakes import Handshakes
    from postroad.system.stream import Connect

SYNC_THREADS: Final = 4  # syncs of different files overlap in the kernel; more gained nothing
SLOW_THREADS: Final = 2  # recovery, compaction, retention: never in front of a sync
COLD_THREADS: Final = 2  # data that is read for the first time: in front of neither
REMEMBER_S: Final = 60.0  # between two notes of how far the store was followed: each is a sync
TLS_THREADS: Final = 2  # for handshakes, if a listener speaks TLS
DRAIN_S: Final = 2.0  # how long a stop waits for answers that are under way

log = logging.getLogger(__name__)


class Node:
    def __init__(self, loaded: Loaded, runtime: Runtime | None = None) -> None:
        self.runtime = runtime = runtime or SystemRuntime()
        self.loaded = loaded
        self.settings = settings = loaded.settings
        self.clock = runtime.clock
        self.directory = DataDirectory(Path(settings.data.dir), runtime.disk)
        self.partitions = Partitions()
        self.fetch_sessions = FetchSessions(settings.limits.fetch_sessions_max)
        self.dispatcher = Dispatcher(self, api.ALL)
        self.tasks = Tasks()
        self.security = Security(self)
        self.quotas = Quotas(self)
        self.peers = Peers(self)
        self.housekeeping = Housekeeping(self)
        self.port = 0
        self.ports: dict[str, int] = {}  # of all listeners, by name
        self.certificates: Certificates | None = None  # if a listener speaks TLS
        self.handshakes: Handshakes | None = None
        self.started_ms = self.clock.monotonic_ms()
        self.failed = asyncio.Event()  # something that the node can't do without has ended

    # --- life

    async def start(self) -> None:
        """Serves when this returns. If it raises, the directory and the port are free again."""
        try:
            await self._start()
        except BaseException:
            await self._give_up()
            raise

    async def _start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.turn = Turn(self.loop)
        self.workers = self.runtime.workers(SYNC_THREADS, "sync")
        self.slow_workers = self.runtime.workers(SLOW_THREADS, "slow")
        self.cold_workers = self.runtime.workers(COLD_THREADS, "cold")
        self.flusher = Flusher(self.loop, self.workers)
        descriptors = Descriptors(self.partitions, process.open_files_max())
        limits, listen = self.settings.limits, self.runtime.listen
        listeners = self.settings.kafka.every_listener
        if any(listener.is_tls for listener in listeners):
            self._prepare_tls()
        self.listener = Listener(
            *(self.loop, self.turn, limits, descriptors, self.dispatcher.handle, listen),
            *(self.certificates, self.handshakes),
        )
        self.listener.admitted = self._admitted
        self.directory.open()
        self.security.start()
        self.ports = {listener.name: self.listener.bind(listener) for listener in listeners}
        self.port = self.ports[DEFAULT_NAME]
        self.store: Store = await self.runtime.open_store(self.directory.store, self.settings.cluster.store)
        self.registration = Registration(
            self.store,
            self._my_entry(),
            self._commit_urgently,
            self.settings.cluster.lease_length_ms,
            self.clock,
        )
        self.evidence = Evidence(self)
        self.topics = Topics(self, self.store, self.directory)
        self.replicas = Replicas(self, self.directory)
        self.damaged_copies = DamagedCopies(self)
        self.roles = Roles(self)
        self.strays = Strays(self)
        self.catch_up = CatchUp(self.settings.node.id, self.settings.cluster.catch_up_bytes_per_s)
        self.replica_sessions = ReplicaSessions(self)
        self.controlling = Controlling(self)
        self.suspects = Suspects(self)
        self.leader_checks = LeaderChecks(self)
        self.handover = Handover(self)
        self.elections = Elections(self)
        self.moves = Moves(self)
        self.topic_changes = TopicChanges(self.topics, self.peers, self.settings.topics, self.runtime.random)
        self.groups = GroupCoordination(self)
        self.transactions = TransactionCoordination(self)
        self.subscriptions = Subscriptions(self)
        self.producer_ids = ProducerIds(self.topics)
        await self._join_cluster()
        self.tasks.start(self._follow(), "follow-store")
        if self.certificates is not None:
            self.tasks.start(self.certificates.keep_current(), "keep-certificates")
        if self._follows_etcd:
            self.tasks.start(self._remember_store(), "remember-store")
        self.tasks.start(self.replicas.reopen(), "reopen-partitions")
        self.tasks.start(self.replicas.run_timeouts(), "time-out-producers")
        self.tasks.start(self.roles.isr_writer.run(), "write-isr")
        self.tasks.start(self.controlling.run(), "control")
        self.tasks.start(self.handover.run(), "hand-over")
        self.tasks.start(self.strays.run(), "delete-strays")
        await self.groups.start()
        await self.transactions.start()
        await self.subscriptions.start()
        self.tasks.start(HangingTransactions(self).watch(), "hanging-transactions")
        if self.settings.cluster.store:  # else there is nobody who could lead anything
            self.tasks.start(Widening(self).run(), "widen-queues")
        self.tasks.start(self.housekeeping.run_retention(), "retention")
        self.tasks.start(self.housekeeping.run_compaction(), "compaction")
        self.directory.reserve.lay_aside()
        self.listener.start_accepting()

    async def stop(self) -> None:
        """Let others lead, drain, sync, and leave the directory clean."""
        await self.handover.leave()
        self.listener.stop_accepting()
        await self._drain()
        self.listener.close()  # before the tasks: nobody starts another one
        await self._end_tls()
        self.transactions.close()
        self.groups.close()
        await self.subscriptions.dead_letters.finish(DRAIN_S)
        self.subscriptions.close()
        await self.tasks.close()
        self.peers.close()
        self.leader_checks.close()
        closing = [self.replicas.close_partition(partition) for partition in list(self.partitions)]
        clean = all(await asyncio.gather(*closing)) and not self.partitions.offline()
        await self.registration.end()
        await self.store.close()
        for workers in (self.workers, self.slow_workers, self.cold_workers):
            workers.close()
        self.security.close()
        if self._follows_etcd:
            self._note_revision()
        self.directory.close(clean)

    async def _give_up(self) -> None:
        """A start that failed half-way lets go of what it holds; the logs are left as after a kill."""
        if hasattr(self, "listener"):  # else a certificate is wrong
            self.listener.close()
        await self._end_tls()
        await self.tasks.close()
        self.peers.close()
        if hasattr(self, "leader_checks"):
            self.leader_checks.close()
        if hasattr(self, "registration"):
            await self.registration.end()
        if hasattr(self, "store"):
            await self.store.close()
        for workers in (self.workers, self.slow_workers, self.cold_workers):
            workers.close()
        self.security.close()
        self.directory.close(clean=False)

    async def _join_cluster(self) -> None:
        """Agree with the store on who we are, then open what we should have."""
        random, commit = self.runtime.random.randbytes(16), self._commit_urgently
        joining = Joining(
            self.store,
            self.directory,
            self.registration,
            commit,
            random,
            self.replicas.is_synced,
            self.settings.node.replace,
            self._follows_etcd,
            self.settings.security.enabled,
        )
        snapshot, clean = await patiently(joining.join, self.settings.cluster.lease_length_ms)
        self.tasks.start(self.registration.keep(), "keep-lease")  # logs may take longer than a lease
        await self.slow_workers.call(self.directory.finish_removals)
        await self.topics.catch_up(snapshot, clean)
        await patiently(self.registration.serve, self.settings.cluster.lease_length_ms)
        self._report_strays()
        self.replicas.finish_deletions()

    async def _commit_urgently(self, decision: Decision) -> int | None:
        return await self.topics.commit(decision, urgent=True)

    def _my_entry(self) -> NodeEntry:
        host, port = self.settings.kafka.host_to_advertise, self.advertised_port
        random = self.runtime.random
        directory = self.directory.known_id(id_text(make_id(random.randbytes(16))))
        incarnation = random.randbytes(8).hex()
        first, *others = self.settings.kafka.every_listener
        return NodeEntry(
            *(self.settings.node.id, host, port, incarnation, directory, STARTING, self.settings.node.rack),
            is_tls=first.is_tls,
            listeners={
                each.name: (each.host_to_advertise, each.advertised_port or self.ports[each.name])
                for each in others
            },
        )

    def _prepare_tls(self) -> None:
        """Imported here: a node without TLS does without its memory."""
        from postroad.broker.certificates import Certificates
        from postroad.broker.handshakes import Handshakes

        self.certificates = Certificates(self.settings, self.clock, self.runtime.connect)
        self._tls_workers = self.runtime.workers(TLS_THREADS, "tls")
        self.handshakes = Handshakes(self._tls_workers)

    async def _end_tls(self) -> None:
        if self.handshakes is not None:
            await self.handshakes.close()
            self._tls_workers.close()

    def connect_to(self, entry: NodeEntry) -> Connect:
        """How to connect to another node, at its first listener."""
        if entry.is_tls and self.certificates is not None:
            return self.certificates.connect
        return self.runtime.connect

    async def _follow(self) -> None:
        """A node that can't follow the store any more must not go on as if it could."""
        try:
            await self.topics.follow()
        except Exception:
            self.fail("the coordination store can't be followed")

    @property
    def _follows_etcd(self) -> bool:
        return self.settings.cluster.store.startswith(("etcd:", "etcd+tls:"))

    async def _remember_store(self) -> None:
        """For as long as the node lives: note how far it has followed an etcd, for the next start."""
        while True:
            await asyncio.sleep(REMEMBER_S)
            await self.slow_workers.call(self._note_revision)

    def _note_revision(self) -> None:
        """What can't be written is left: it only guards the next start."""
        try:
            self.directory.note_revision(self.image.revision)
        except (OSError, ConfigurationError) as error:
            log.warning("the revision of the coordination store could not be noted: %s", error)

    def fail(self, reason: str) -> None:
        """Called where an error is handled that the node can't go on with: it stops."""
        log.exception("%s: the node stops", reason)
        self.failed.set()

    def _report_strays(self) -> None:
        """Directories of topics that the store has never heard of: kept, and said."""
        known = {id_text(topic_id) for topic_id in (*self.image.topics_by_id, *self.image.deleted)}
        for topic_id, index in self.directory.partitions():
            if topic_id not in known:
                log.warning(
                    "logs/%s-%d belongs to no topic of the coordination store; it is kept", topic_id, index
                )

    async def _drain(self) -> None:
        """Take no more requests; answer those that are here, long polls at once."""
        self.listener.stop_reading()
        for partition in list(self.partitions):
            partition.expire_readers()
        self.security.news.end_waits()
        deadline = self.loop.time() + DRAIN_S
        while self.loop.time() < deadline:
            if all(connection.answered_all for connection in self.listener.connections):
                return
            await asyncio.sleep(0.005)

    # --- who and where

    @property
    def image(self) -> Image:
        return self.topics.image

    @property
    def advertised_port(self) -> int:
        return self.settings.kafka.advertised_port or self.port

    def _admitted(self, connection: Connection) -> None:
        self.security.admit(connection)
        self.quotas.admit(connection)

    def topics_changed(self, changes: Changes) -> None:
        """Called after partitions were opened and closed accordingly."""
        self.groups.topics_changed(changes)
        self.subscriptions.changed(changes)

    def partition_led(self, partition: Partition) -> None:
        """This node leads the partition from here on."""
        self.groups.partition_led(partition)
        self.transactions.partition_led(partition)
        self.subscriptions.partition_led(partition)

    def partition_left(self, partition: Partition) -> None:
        """Another node may lead the partition by now: clients that wait for its records look for it."""
        self.groups.partition_left(partition)
        self.transactions.partition_left(partition)

    def partition_resigned(self, partition: Partition) -> None:
        """This node does not lead the partition any more; clients are told so already."""
        self.groups.partition_resigned(partition)
        self.transactions.partition_resigned(partition)
        self.subscriptions.partition_resigned(partition.topic_id, partition.index)
        if partition.topic == OFFSETS_TOPIC:
            self.subscriptions.membership.resigned(partition.index)
