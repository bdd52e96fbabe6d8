"""A follower's fetcher: it copies from one leader all logs of one kind that this node follows there.

Logs with flush `sync` have a fetcher of their own, because its rounds wait for the disk: the offset of a
fetch is the promise that everything below is safe here, so a log is named again when what came last is safe.

    connect → name every log → (answer → append, write, make safe → name what has moved) again and again

A leader that has sent much of a log has more, mostly. Then what follows is asked for while the disk is still
busy with what came: such a fetch reads ahead of what it promises. It is answered at once, be it with nothing,
so that the promise that follows from the sync never has to wait for an answer.

An answer is appended and written in the call that received it. One log that can't be copied waits by itself;
the others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.broker.partition import Partition
from postroad.broker.replica_connection import ReplicaConnection
from postroad.cluster.keys import node_key
from postroad.errors import ApiError, MisplacedBatch, NetworkException, PostroadError, StorageFailed
from postroad.replication.divergence import EpochEnd
from postroad.replication.follower import Follower, Step
from postroad.wire import replica_fetch as codec
from postroad.wire.fetch import FetchRequest, PartitionFetch

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.cluster.image import NodeEntry
    from postroad.system.stream import Stream

WAIT_MS: Final = 500  # a poll without news; high watermarks ride on its answer
READ_WAIT_MS: Final = 10  # the same while consumers read here, who wait for the high watermark
READ_S: Final = 5.0  # so long after the last of them has asked
ANSWER_BYTES: Final = 8 * 1024 * 1024
# What comes at once of one log is checked and written while it lies in the processor's cache: with 4 MiB it
# took 1.12 times the processor time. Where each round waits for the disk, fewer and larger ones are better:
# 1.13 times the throughput of rounds with 1 MiB, for 0.85 of the processor time.
PARTITION_BYTES: Final = 1024 * 1024
SYNCED_PARTITION_BYTES: Final = 4 * 1024 * 1024
AHEAD_ROUNDS_MAX: Final = 4  # of one log on their way to the disk; a stop of the machine may take them
IN_FLIGHT_MAX: Final = 2  # the second one overtakes a poll that waits, for a log that is new
CONNECT_S: Final = 1.0
SILENCE_S: Final = 5.0  # ten polls: a leader that says nothing for so long is not there
RETRY_FIRST_S: Final = 0.05
RETRY_LONGEST_S: Final = 1.0

LogKey = tuple[bytes, int]

log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """Where a log was when it was last named, and by which request."""

    request: int
    epoch: int
    offset: int
    is_ahead: bool


class ReplicaFetcher:
    def __init__(
        self, node: Node, leader: int, cut: Callable[[Partition, Step], None], *, synced: bool
    ) -> None:
        """`cut` takes logs back that have parted from the leader's; they are named anew afterwards.

        `synced`: they have flush `sync`.
        """
        self.leader = leader
        self._ahead_bytes = node.settings.cluster.read_ahead_bytes if synced else ANSWER_BYTES + 1
        self._partition_bytes = SYNCED_PARTITION_BYTES if synced else PARTITION_BYTES
        self.logs: dict[LogKey, Partition] = {}
        self._node = node
        self._cut = cut
        self._asked: dict[LogKey, Asked] = {}  # what the session holds
        self._to_name: dict[LogKey, None] = {}
        self._to_forget: dict[LogKey, None] = {}
        self._staged: list[Partition] = []
        self._unsafe: dict[Partition, deque[int]] = {}  # where each round ends that is not safe yet
        self._full: dict[Partition, None] = {}  # of which the last answer had so much that there may be more
        self._to_read_ahead: dict[LogKey, None] = {}  # to be named although something is not safe
        self._ahead: dict[LogKey, int] = {}  # by which request they were
        self._leader_reads_ahead = True  # as far as is known: one of an older version does not
        self._connection: ReplicaConnection | None = None
        self._in_flight: deque[int] = deque()  # numbers of requests
        self._requests = 0
        self._session = self._session_epoch = 0
        self._broker_epoch = 0
        self._node_key = node_key(node.settings.node.id)
        self._heard_s = 0.0
        self._read_until_s = 0.0
        self._ended: asyncio.Future[str] | None = None
        self._troubled = False

    # --- what to follow

    def add(self, partition: Partition) -> None:
        """Copy the log from here on, at once."""
        key = partition.topic_id, partition.index
        self.logs[key] = partition
        partition.copying = self
        self._to_forget.pop(key, None)
        self._to_name[key] = None
        self._send()

    def remove(self, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        if self.logs.pop(key, None) is None:
            return
        partition.copying = None
        self._to_name.pop(key, None)
        self._ahead.pop(key, None)
        self._drop_unsafe(partition)
        if self._asked.pop(key, None) is not None:
            self._to_forget[key] = None

    def safe(self, partition: Partition) -> None:
        """More of the log is safe: when all of it is, the next fetch says so."""
        rounds, follower = self._unsafe.get(partition), partition.follower
        if rounds is None or follower is None:
            return
        while rounds and rounds[0] <= follower.safe_offset:
            rounds.popleft()
        if rounds:
            if self._read_ahead(partition):
                self._send()
            return
        self._drop_unsafe(partition)
        key = partition.topic_id, partition.index
        if key not in self._ahead:  # else it is named when that is answered, or it would be sent twice
            self._to_name[key] = None
        if not self._unsafe:
            self._send()

    def failed(self, partition: Partition) -> None:
        """What was appended to the log can't be made safe."""
        self._drop_unsafe(partition)
        self._node.replicas.begin_anew(partition)
        self._send()

    def _drop_unsafe(self, partition: Partition) -> None:
        self._unsafe.pop(partition, None)
        self._full.pop(partition, None)
        self._to_read_ahead.pop((partition.topic_id, partition.index), None)

    def _read_ahead(self, partition: Partition) -> bool:
        """Name the log although something is not safe yet, if there is more of it; whether that is so."""
        key, rounds = (partition.topic_id, partition.index), self._unsafe.get(partition)
        if rounds is None or partition not in self._full or key in self._ahead:
            return False
        if len(rounds) >= AHEAD_ROUNDS_MAX or not self._leader_reads_ahead:
            return False
        self._to_read_ahead[key] = self._to_name[key] = None
        return True

    # --- consumers that read what is followed (KIP-392)

    @property
    def is_current(self) -> bool:
        return self._connection is not None and self._node.loop.time() - self._heard_s <= SILENCE_S

    def read_here(self) -> None:
        self._read_until_s = self._node.loop.time() + READ_S

    # --- the connection

    async def run(self) -> None:
        """For as long as something is followed there: connect again whenever the connection has ended."""
        pause_s = RETRY_FIRST_S
        while True:
            try:
                await self._serve()
            except (OSError, PostroadError, TimeoutError) as error:
                if not self._troubled:
                    log.warning(
                        "node %d can't be fetched from; still trying: %s", self.leader, error or "time-out"
                    )
                self._troubled = True
                if isinstance(error, ConnectionRefusedError):
                    self._node.suspects.suspect(self.leader)
            finally:
                self._disconnect()
            pause_s = RETRY_FIRST_S if not self._troubled else min(2 * pause_s, RETRY_LONGEST_S)
            await asyncio.sleep(pause_s)

    async def _serve(self) -> None:
        """Fetch over one connection, until it ends. Raises why."""
        entry = self._node.image.nodes.get(self.leader)
        if entry is None:
            raise NetworkException(f"Node {self.leader} is not registered.")
        async with asyncio.timeout(CONNECT_S):
            stream = await self._connect(entry)
        loop = self._node.loop
        self._ended = loop.create_future()
        self._connection = ReplicaConnection(stream, loop, self._answered, self._lost)
        self._begin_session()
        self._heard_s = loop.time()
        self._send()
        while not self._ended.done():
            await asyncio.wait([self._ended], timeout=SILENCE_S / 2)
            if loop.time() - self._heard_s > SILENCE_S and self._in_flight:
                raise NetworkException(f"Node {self.leader} does not answer.")
        self._node.suspects.suspect(self.leader)
        raise NetworkException(self._ended.result())

    async def _connect(self, entry: NodeEntry) -> Stream:
        connect, log_in = self._node.connect_to(entry), self._node.security.log_in_as_node()
        if log_in is None:
            return await connect(entry.host, entry.port)
        from postroad.client.connection import open_connection

        name = f"node-{self._node.settings.node.id}"
        opened = await open_connection(connect, entry.host, entry.port, name, CONNECT_S, log_in)
        return opened.detach()

    def _lost(self, reason: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._in_flight.clear()

    def _begin_session(self) -> None:
        self._session = self._session_epoch = 0
        self._broker_epoch = self._node.image.node_epoch(self._node.settings.node.id)
        self._asked.clear()
        self._ahead.clear()
        self._leader_reads_ahead = True
        self._to_forget.clear()
        self._to_name = dict.fromkeys(self.logs)

    # --- asking

    def _send(self) -> None:
        """Ask for what can be asked for, unless a request is under way that will bring it."""
        if self._connection is None or len(self._in_flight) >= IN_FLIGHT_MAX:
            return
        if self._unsafe and not self._to_read_ahead:
            return
        if self._in_flight and not (self._to_name and self._session):
            return  # nothing is new, or the session's number has to come first, with the first answer
        if not self._in_flight and self._is_outdated():
            self._begin_session()
        partitions = self._named()
        if self._in_flight and not partitions:
            return
        if not self._in_flight and not partitions and not self._asked:
            return  # nothing can be asked for yet
        self._requests += 1
        self._in_flight.append(self._requests)
        request = FetchRequest(
            self._node.settings.node.id,
            self._wait_ms(),
            1,
            ANSWER_BYTES,
            0,
            self._session,
            self._session_epoch,
            partitions,
            sorted(self._to_forget),
            0,
            self._broker_epoch,
        )
        self._to_forget.clear()
        self._session_epoch += 1
        self._connection.send(codec.encode_frame(request, self._requests & 0x7FFFFFFF, b"replica"))

    def _wait_ms(self) -> int:
        if self._ahead:
            return 0
        return WAIT_MS if self._node.loop.time() >= self._read_until_s else READ_WAIT_MS

    def _is_outdated(self) -> bool:
        """This node has another broker epoch: what it promises in the name of the old one counts no more."""
        return self._broker_epoch != self._node.image.key_revision(self._node_key)

    def _named(self) -> list[PartitionFetch]:
        now_ms = self._node.clock.monotonic_ms()
        found = []
        for key in sorted(self._to_name):
            partition = self.logs[key]
            follower, is_ahead = partition.follower, key in self._to_read_ahead
            if follower is None:
                continue
            if not (follower.may_read_ahead(now_ms) if is_ahead else follower.may_fetch(now_ms)):
                continue
            del self._to_name[key]
            self._ahead.pop(key, None)
            if is_ahead:
                del self._to_read_ahead[key]
                self._ahead[key] = self._requests + 1
            self._asked[key] = Asked(self._requests + 1, follower.epoch, follower.offset, is_ahead)
            found.append(
                PartitionFetch(
                    *key,
                    follower.epoch,
                    follower.safe_offset if is_ahead else follower.offset,
                    self._partition_bytes,
                    follower.last_epoch,
                    partition.log.start_offset,
                    follower.offset if is_ahead else -1,
                )
            )
        return found

    # --- answers

    def _answered(self, frame: memoryview) -> None:
        answer = codec.decode(frame)
        number = self._in_flight.popleft() if self._in_flight else 0
        self._heard_s = self._node.loop.time()
        if answer.correlation != number & 0x7FFFFFFF or answer.error:
            self._in_flight.clear()
            self._lost("the session was refused" if answer.error else "an answer nobody asked for")
            return
        self._troubled = False
        self._session = answer.session_id
        turn = self._node.turn
        turn.begin()
        now_ms, wall_ms = self._node.clock.monotonic_ms(), self._node.clock.now_ms()
        ahead = [key for key, request in self._ahead.items() if request <= number]
        for key in ahead:
            del self._ahead[key]
        for fetched in answer.partitions:
            key = fetched.topic_id, fetched.index
            partition, asked = self.logs.get(key), self._asked.get(key)
            if partition is None or asked is None or asked.request > number:
                continue  # forgotten, or named anew since: the next answer has it
            if partition.follower is not None:
                self._take(partition, partition.follower, asked, fetched, now_ms, wall_ms)
        turn.when_written(self)
        turn.end()  # before the receive buffer is used again
        for key in ahead:
            if key in self.logs and self.logs[key] not in self._unsafe:  # else that is done when it is safe
                self._to_name[key] = None
        self._send()

    def _take(
        self,
        partition: Partition,
        follower: Follower,
        asked: Asked,
        fetched: codec.Fetched,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        _, epoch, offset, is_ahead = asked
        where = partition.topic, partition.index
        if fetched.error:
            log.debug("%s-%d: the leader refused a fetch of epoch %d: error %d", *where, epoch, fetched.error)
            step = follower.refused(epoch, offset, fetched.error, fetched.start_offset, now_ms)
        elif fetched.diverging is not None:
            end = EpochEnd(*fetched.diverging)
            text = "%s-%d has parted from its leader: epoch %d here, epoch %d ends at %d there"
            log.debug(text, *where, follower.last_epoch, *end)
            step = follower.diverged(epoch, offset, end, partition.log.leader_epochs, fetched.start_offset)
        else:
            step = follower.answered(epoch, offset, fetched.watermark, fetched.start_offset, fetched.purged)
        if step is Step.APPEND:
            step = self._append(partition, follower, fetched, is_ahead, now_ms, wall_ms)
        if step is Step.WAIT:
            self._name_later(partition, follower, now_ms)
        elif step in (Step.TRUNCATE, Step.RESET):
            self._cut(partition, step)

    def _append(
        self,
        partition: Partition,
        follower: Follower,
        fetched: codec.Fetched,
        is_ahead: bool,
        now_ms: int,
        wall_ms: int,
    ) -> Step:
        if not len(fetched.records):
            partition.copied()
            self._follow_start(partition, follower)
            return Step.STALE
        self._staged.append(partition)
        if len(fetched.records) >= self._ahead_bytes:
            self._full[partition] = None
        else:
            self._full.pop(partition, None)
        self._slow_down(partition, follower, len(fetched.records), now_ms)
        try:
            partition.append_copy(fetched.records, wall_ms)
        except MisplacedBatch as error:
            if is_ahead and error.base_offset < follower.offset:
                self._leader_reads_ahead = False
                self._staged.pop()
                return Step.STALE
            if partition.log.end_offset <= max(partition.log.start_offset, fetched.start_offset):
                self._staged.pop()  # nothing is
                return follower.begins_at(error.base_offset)
            log.error("%s-%d: %s", partition.topic, partition.index, error)
            return follower.failed(now_ms)
        except ApiError as error:
            if partition.log.failed is None:
                where = partition.topic, partition.index
                if isinstance(error, StorageFailed):
                    self._node.handover.leave_soon(partition)
                    log.error("%s-%d can't write what its leader sent: %s", *where, error)
                else:
                    log.error("%s-%d can't copy what its leader sent: %s", *where, error)
            return self._failed(partition, follower, now_ms)
        return Step.APPEND

    def _slow_down(self, partition: Partition, follower: Follower, copied: int, now_ms: int) -> None:
        """Let a log that is not in sync wait, if this node copies such logs faster than it may."""
        topic = self._node.image.topics_by_id.get(partition.topic_id)
        if topic is None or self._node.settings.node.id in topic.partitions[partition.index].isr:
            return
        delay_ms = self._node.catch_up.delay_ms(copied, now_ms)
        if delay_ms:
            follower.pause(now_ms + delay_ms)
            key = partition.topic_id, partition.index
            if self._asked.pop(key, None) is not None:
                self._to_forget[key] = None  # or each append there would send again what has come already
            go_on = partial(self._go_on, partition, follower)
            self._node.catch_up.wait(key, go_on)
            self._node.loop.call_later((delay_ms + 1) / 1000, go_on)

    def _go_on(self, partition: Partition, follower: Follower) -> None:
        """It has waited for as long as the limit wants, or that has changed meanwhile."""
        self._node.catch_up.done((partition.topic_id, partition.index))
        if partition.follower is follower:
            follower.pause(0)
            self.name_again(partition)

    def _failed(self, partition: Partition, follower: Follower, now_ms: int) -> Step:
        """Try again later. A log that its disk has failed is closed, and opened anew."""
        if partition.log.failed is not None:
            self._node.replicas.begin_anew(partition)
        return follower.failed(now_ms)

    def written(self) -> None:
        """Called by the turn: what was staged is in the files, or was refused."""
        staged, self._staged = self._staged, []
        for partition in staged:
            follower = partition.follower
            if follower is None:
                continue
            if partition.write_error is not None:
                now_ms = self._node.clock.monotonic_ms()
                if partition.is_full:
                    self._node.handover.leave_soon(partition)
                self._failed(partition, follower, now_ms)
                self._name_later(partition, follower, now_ms)
                continue
            follower.appended(partition.log.end_offset, partition.log.last_epoch)
            self._unsafe.setdefault(partition, deque()).append(follower.offset)
            partition.copied()
            self._follow_start(partition, follower)
            self._read_ahead(partition)

    def _follow_start(self, partition: Partition, follower: Follower) -> None:
        """What the leader has deleted goes here, too."""
        if follower.log_start > partition.log.start_offset:
            try:
                partition.log.delete_before(follower.log_start, partition.high_watermark)
                self._to_name[partition.topic_id, partition.index] = None  # its leader may wait to hear of it
            except ApiError as error:
                log.error(
                    "%s-%d can't follow its leader's start: %s", partition.topic, partition.index, error
                )

    def _name_later(self, partition: Partition, follower: Follower, now_ms: int) -> None:
        delay_ms = max(follower.wait_until_ms - now_ms, 0) + 1
        self._node.loop.call_later(delay_ms / 1000, partial(self.name_again, partition))

    def name_again(self, partition: Partition) -> None:
        """The log has another end, or has waited long enough."""
        key = partition.topic_id, partition.index
        if self.logs.get(key) is partition:
            self._to_name[key] = None
            self._send()
