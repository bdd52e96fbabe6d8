"""ShareFetch (78), versions 1–2: messages go out to the members of a subscription, and are acknowledged.

Acknowledgements come first: the answer waits until they are durable, each partition's as a whole or not at
all. Then messages are acquired, never more than `max_records`, nor more than fit into `max_bytes` with all
that the answer holds besides. Only its first batch may be larger, or it would never go out. Where other
members ask, too, and there is not enough for all, each gets its part (`subscriptions.sharing`). Where none is
available the request parks with its queues, until one has something or `max_wait` is over. An error of a
partition waits that long, too: librdkafka asks again at once, for as long as it takes. Only that another node
leads is told sooner, and which one it is (KIP-951).

What is acquired belongs to the session's member, and is released when that leaves; where an owner is named (a
tag of our own), to that owner until its lock ends, whatever becomes of the connection. A fetch for an owner
begins no subscription: one that was deleted stays so.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, Protocol, cast

from postroad.broker.access import OPEN, Rights
from postroad.broker.api.share_acknowledge import check_access, check_member, check_owner, given, named_in
from postroad.broker.cluster_view import WRONG_LEADER, ClusterView
from postroad.broker.connection import Answer, Body, Part
from postroad.broker.dispatch import Call, Result
from postroad.broker.partitions import TopicPartition
from postroad.broker.parts import (
    HasClock,
    HasEvidence,
    HasImage,
    HasLoop,
    HasPartitions,
    HasRegistration,
    HasSettings,
    HasSubscriptions,
)
from postroad.broker.subscriptions.acknowledgements import Acknowledgements
from postroad.broker.subscriptions.queue import Delivery, Queue, Wanted
from postroad.broker.subscriptions.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from postroad.broker.subscriptions.sharing import share_of
from postroad.broker.tail_fetch import WAIT_MS_MAX
from postroad.errors import ApiError, InvalidRequest, NotLeaderOrFollower, ShareSessionLimitReached
from postroad.queues.share_partition import AckBatch
from postroad.queues.update import Key
from postroad.security.resources import Operation
from postroad.wire import share_fetch as codec
from postroad.wire.share_fetch import PartitionAnswer, ShareFetchRequest

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.READ)

ANSWER_BYTES: Final = 64  # an answer takes so much without any partition, and at most …
PARTITION_BYTES: Final = 64  # … so much more for each, without its messages and errors
MOVED_WAIT_MS: Final = 100  # who asks the wrong node asks another, but not all the time


class Uses(
    HasClock,
    HasEvidence,
    HasImage,
    HasLoop,
    HasPartitions,
    HasRegistration,
    HasSettings,
    HasSubscriptions,
    Protocol,
):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode(call.body, call.version)
    named = named_in(request.partitions)
    try:
        session = _session(node, call, request, named)
    except ApiError as error:
        return _refused(node, call, request, error)
    answer = ShareFetch(node, call, request, session)
    answer.begin({topic_partition: batches for topic_partition, batches in named.items() if batches})
    return answer


def _session(
    node: Uses, call: Call, request: ShareFetchRequest, named: dict[TopicPartition, list[AckBatch]]
) -> ShareSession:
    group, member = request.group_id or "", request.member_id or ""
    check_access(call.access, group, request.owner)
    check_owner(group, request.owner)
    check_member(member)
    if request.is_renew_ack and (request.max_records or request.max_bytes or request.max_wait_ms):
        raise InvalidRequest("A request that renews locks fetches nothing: its limits must be 0.")
    if request.share_session_epoch == INITIAL_EPOCH:
        if any(named.values()):
            raise InvalidRequest("A new session has nothing to acknowledge.")
        session = node.subscriptions.membership.open_session(group, member, call.connection)
    else:
        session = node.subscriptions.sessions.go_on(
            group, member, request.share_session_epoch, call.connection
        )
    session.update(named, request.forgotten)
    return session


def _refused(node: Uses, call: Call, request: ShareFetchRequest, error: ApiError) -> Result:
    body = b"".join(codec.encode([], 0, error.code, str(error)))
    if not isinstance(error, ShareSessionLimitReached):
        return body
    answer = call.park()  # who finds no room must not ask for it all the time
    wait_s = min(max(request.max_wait_ms, 0), WAIT_MS_MAX) / 1000
    node.loop.call_later(wait_s, lambda: None if answer.abandoned else answer.complete(body))
    return answer


class ShareFetch(Answer):
    """One request, from its acknowledgements to its answer."""

    __slots__ = (
        "_access",
        "_acknowledgements",
        "_deliveries",
        "_errors",
        "_node",
        "_parked_on",
        "_request",
        "_session",
        "_timer",
        "_unsettled",
        "_version",
    )

    def __init__(self, node: Uses, call: Call, request: ShareFetchRequest, session: ShareSession) -> None:
        super().__init__(call.connection, call.correlation, call.flexible)
        self._access = call.access
        self._node = node
        self._version = call.version
        self._request = request
        self._session = session
        self._deliveries: dict[TopicPartition, Delivery] = {}
        self._errors: dict[TopicPartition, ApiError] = {}
        self._acknowledgements: dict[TopicPartition, ApiError | None] = {}
        self._parked_on: list[Queue] = []
        self._timer: asyncio.TimerHandle | None = None
        self._unsettled = 0
        call.connection.park(self)

    def begin(self, named: dict[TopicPartition, list[AckBatch]]) -> None:
        if not named:
            self._fetch()
            return
        session = self._session
        acknowledgements = Acknowledgements(
            self._node,
            self._access,
            session.group,
            session.member,
            self._request.is_renew_ack,
            self._acknowledged,
        )
        self._acknowledgements = acknowledgements.errors
        acknowledgements.take(named, given(self._request.lock_ms))

    def _acknowledged(self) -> None:
        if self._request.share_session_epoch == FINAL_EPOCH:
            self._node.subscriptions.membership.end_session(self._session)
        if not self.abandoned:
            self._fetch()

    def _fetch(self) -> None:
        request = self._request
        fetches = request.max_records > 0 and request.max_bytes > 0
        if fetches:
            self._note_ask()
        if request.share_session_epoch == FINAL_EPOCH:
            self._node.subscriptions.membership.end_session(self._session)
            fetches = False
        if not fetches or self._collect() or request.max_wait_ms <= 0:
            self._finish()
        else:
            self._park()

    def _collect(self) -> bool:
        """Ask every queue of the session, until the limits are reached; whether there is anything."""
        node, request, session = self._node, self._request, self._session
        if session.closed:  # its member has left, or opened another, while this waited
            return False
        lock_ms, holder = given(request.lock_ms), request.owner or session.member
        records, size, now_ms = request.max_records, self._room(), node.clock.monotonic_ms()
        if not request.owner:
            records = share_of(node.subscriptions, session, records, now_ms)
        share = records
        run_max = max(1, request.run_max)
        self._errors.clear()
        for topic_partition in list(session.partitions):
            try:
                if self._access is not OPEN:  # each time: rules may change while it waits
                    self._access.check_group(session.group)
                    self._access.check_topic(topic_partition[0])
                queue = node.subscriptions.queue(session.group, *topic_partition, begin=not request.owner)
                if queue is not None:
                    node.evidence.check(queue.partition)
            except ApiError as error:
                self._errors[topic_partition] = error
                continue
            wanted = Wanted(holder, records, size, lock_ms, run_max, one_at_least=not self._deliveries)
            delivery = None if queue is None else queue.deliver(wanted)
            if delivery is None:
                continue
            self._deliveries[topic_partition] = delivery
            session.served(topic_partition)
            for first, last, _ in delivery.acquired:
                records -= last - first + 1
            size -= delivery.size + PARTITION_BYTES
            if records <= 0 or size <= 0:
                break
        if self._deliveries:
            session.take(share - records)
        return bool(self._deliveries)

    def _note_ask(self) -> None:
        session, subscriptions = self._session, self._node.subscriptions
        held = subscriptions.held_by(session.group, session.member)
        session.ask(held, self._node.clock.monotonic_ms())

    def _room(self) -> int:
        """How many bytes messages may take in the answer; one batch may have more."""
        bytes_max = min(self._request.max_bytes, self._node.settings.limits.fetch_bytes_max)
        return max(bytes_max - ANSWER_BYTES - PARTITION_BYTES * (len(self._acknowledgements) + 1), 1)

    # --- waiting

    def _park(self) -> None:
        node, session = self._node, self._session
        wait_ms = min(self._request.max_wait_ms, WAIT_MS_MAX)
        if any(error.code in WRONG_LEADER for error in self._errors.values()):
            wait_ms = min(wait_ms, MOVED_WAIT_MS)
        self._timer = node.loop.call_later(wait_ms / 1000, self.expire)
        session.waits = True
        for topic_partition in session.partitions:
            if topic_partition in self._errors:
                continue
            queue = node.subscriptions.queue(session.group, *topic_partition)
            if queue is not None:
                self._parked_on.append(queue)
                queue.park(self)

    def wake(self) -> None:
        """One of the queues may have something."""
        if self._collect():
            self.abandon()
            self._finish()

    def expire(self) -> None:
        """The time is over."""
        self.abandon()
        if self.framed is None and not self.abandoned:
            self._complete()

    def abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._session.waits = False
        for queue in self._parked_on:
            queue.unpark(self)
        self._parked_on = []

    # --- the answer

    def _finish(self) -> None:
        """What is delivered at most once is done before it is sent."""
        self._unsettled = 1
        for topic_partition, delivery in list(self._deliveries.items()):
            if delivery.settlement is not None:
                self._unsettled += 1
                queue = self._node.subscriptions.queue(self._session.group, *topic_partition)
                assert queue is not None
                queue.commit(delivery.settlement, partial(self._settled, topic_partition))
        self._settled(None, None)

    def _settled(self, topic_partition: TopicPartition | None, error: ApiError | None) -> None:
        if topic_partition is not None and error is not None:
            del self._deliveries[topic_partition]  # it comes again
        self._unsettled -= 1
        if not self._unsettled and not self.abandoned:
            self._complete()

    def _complete(self) -> None:
        if not self._deliveries:
            self._tell_troubles()
        lock_ms = self._node.subscriptions.settings(self._session.group).lock_ms
        if self._errors or any(self._acknowledgements.values()):
            view = ClusterView(self._node.image, self._node.registration.me, self.connection.listener)
            answers = [self._answer(topic_partition, view) for topic_partition in self._topic_partitions()]
            endpoints = view.endpoints(answer.leader for answer in answers if answer.leader is not None)
            parts = codec.encode(answers, lock_ms, endpoints=endpoints)
        else:
            named = self._topic_partitions() if self._acknowledgements else self._deliveries
            parts = codec.encode([self._answer(each) for each in named], lock_ms)
        body: Body = cast("list[Part]", parts)
        if (quotas := self.connection.quotas) is not None:
            body = quotas.fetched(self.connection, body, self._node.loop.time())
        self.complete(body)

    def _tell_troubles(self) -> None:
        """Where the answer would be empty a partition says that its messages can't be read, or that another
        node has become its leader while this waited."""
        for topic_partition in self._session.partitions:
            if topic_partition in self._errors:
                continue
            try:
                if not self._node.partitions.lead(*topic_partition).leads:
                    raise NotLeaderOrFollower
            except ApiError as error:
                self._errors[topic_partition] = error
                continue
            queue = self._node.subscriptions.queue_in_use(Key(self._session.group, *topic_partition))
            if queue is not None and queue.trouble is not None:
                self._errors[topic_partition] = queue.trouble

    def _topic_partitions(self) -> list[TopicPartition]:
        """Topic by topic, as the answer lists them."""
        return sorted({**self._deliveries, **self._acknowledgements, **self._errors})

    def _answer(self, topic_partition: TopicPartition, view: ClusterView | None = None) -> PartitionAnswer:
        delivery, error = self._deliveries.get(topic_partition), self._errors.get(topic_partition)
        refused = self._acknowledgements.get(topic_partition)
        return PartitionAnswer(
            *topic_partition,
            () if delivery is None else delivery.parts,
            () if delivery is None else delivery.acquired,
            0 if error is None else error.code,
            None if error is None else str(error),
            0 if refused is None else refused.code,
            None if refused is None else str(refused),
            None if view is None else view.hint_after(*topic_partition, error, refused),
        )
