"""A member of a subscription: takes messages, and says what became of each.

Any number of messages may be held at once and acknowledged in any order, while the next ones are polled.
What is not acknowledged comes again when its lock ends, or when the member closes or dies.

A node that was asked for messages may hand them out after the `poll` that asked has ended (it was
cancelled, or another node was quicker): they are kept, and the next `poll` returns them first. Their
locks run meanwhile, so poll in a loop, or close.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Self

from postroad.client.backoff import Backoff
from postroad.client.client import Client, pause_after
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.share_member import ShareMember
from postroad.client.share_message import AckType, ShareMessage, read_delivery
from postroad.client.share_outbox import Outbox, Outcome
from postroad.client.share_session import ShareSession, Terms, TopicIdPartition
from postroad.errors import (
    CorruptMessage,
    LeaderNotAvailable,
    PostroadError,
    TryAgain,
    UnknownTopicOrPartition,
    by_code,
)
from postroad.wire.share_requests import NOT_GIVEN, InTransaction

MAX_RECORDS: Final = 500
MAX_WAIT_MS: Final = 500
LOOK_AGAIN_S: Final = 1.0  # for a topic that does not exist
SLICE_MS: Final = 500  # a longer wait is several requests: partitions that are assigned meanwhile count


class Refusal(NamedTuple):
    """A message of which the acknowledgement changed nothing, or of which nobody knows."""

    message: ShareMessage
    error: PostroadError


class ShareConsumer:
    """`async with ShareConsumer(client, "workers", ["jobs"]) as consumer: await consumer.poll()`"""

    def __init__(self, client: Client, group: str, topics: Sequence[str]) -> None:
        self._client = client
        self._topics = list(topics)
        self._member = ShareMember(client, group)
        self._sessions: dict[int, ShareSession] = {}
        self._outboxes: dict[int, Outbox] = {}
        self._names: dict[bytes, str] = {}  # by topic id, of what was fetched so far
        self._missing_until: dict[str, float] = {}  # by topic name: it need not be looked for before
        self._homes: dict[
            TopicPartition, tuple[int, TopicIdPartition]
        ] = {}  # node and partition by which it was fetched
        self._under_way: dict[int, asyncio.Task[list[tuple[TopicIdPartition, Any]]]] = {}
        self._arrived: deque[ShareMessage] = deque()
        self._polling = asyncio.Lock()
        self._unsettled: list[tuple[ShareMessage, Outcome]] = []

    async def __aenter__(self) -> Self:
        await self._member.join(self._topics)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def member_id(self) -> str:
        return self._member.id

    @property
    def losses(self) -> int:
        """How often what was held at a node was lost, as when its connection ended: that comes again."""
        return sum(session.losses for session in self._sessions.values())

    # --- taking --------------------------------------------------------------------------------

    async def poll(
        self,
        max_records: int = MAX_RECORDS,
        max_wait_ms: int = MAX_WAIT_MS,
        *,
        lock_ms: int = NOT_GIVEN,
    ) -> list[ShareMessage]:
        """Up to `max_records` messages, as soon as there are any; none if none came in time.

        They are held for `lock_ms`, or as long as the subscription says. A node that is away is waited
        for. Polls wait for each other: for several waits at once use several members.
        """
        backoff = Backoff(max_wait_ms / 1000, self._client.runtime)
        async with self._polling:
            while not self._arrived:
                try:
                    await self._fetch(max_records, backoff, lock_ms)
                except CorruptMessage:
                    raise
                except TryAgain as error:
                    self._client.forget()
                    if not await backoff.wait(pause_after(error)):
                        break
                if not backoff.left_s:
                    break
            return [self._arrived.popleft() for _ in range(min(max_records, len(self._arrived)))]

    async def collect(self) -> list[ShareMessage]:
        """What the fetches bring that polls have begun: waits for their end, and asks for nothing more.

        For whoever does not poll for longer than a lock lasts: these messages are held, too. If it is
        cancelled the next poll, or the next of these, has them."""
        async with self._polling:
            await self._end_fetches()
            messages = list(self._arrived)
            self._arrived.clear()
            return messages

    async def _end_fetches(self) -> None:
        while self._under_way:
            done, _ = await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
            for node in [node for node, task in self._under_way.items() if task in done]:
                with contextlib.suppress(PostroadError):  # the next poll meets it, too
                    self._take(node, self._under_way.pop(node).result())

    async def _fetch(self, max_records: int, backoff: Backoff, lock_ms: int) -> None:
        """One round: ask the nodes that are not being asked, take what comes first."""
        if self._member.failure is not None:
            raise self._member.failure
        for node, topic_partitions in (await self._assigned()).items():
            if node not in self._under_way:
                wait_ms = min(SLICE_MS, int(backoff.left_s * 1000))
                fetching = self._session(node).fetch(
                    topic_partitions, max_records=max_records, max_wait_ms=wait_ms, lock_ms=lock_ms
                )
                self._under_way[node] = asyncio.create_task(fetching, name=f"share fetch {node}")
        if not self._under_way:
            await self._wait_for_partitions(backoff.left_s)
            return
        done, _ = await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        for node in [node for node, task in self._under_way.items() if task in done]:
            self._take(node, self._under_way.pop(node).result())

    async def _assigned(self) -> dict[int, list[TopicIdPartition]]:
        """What to read, by the node that leads it. A topic that is gone, is not there yet or was made anew is
        left out, and so is a partition without a leader. Raises if nothing else is left, and why."""
        self._member.changed.clear()
        found: dict[int, list[TopicIdPartition]] = {}
        lacks: TryAgain | None = None
        for name in self._topics if self._member.assigned else ():
            try:
                topic = await self._topic(name)
                self._add(topic, found)
            except (UnknownTopicOrPartition, LeaderNotAvailable) as error:
                lacks = error
        if not found and lacks is not None:
            raise lacks
        return found

    async def _topic(self, name: str) -> Topic:
        """One that does not exist is looked for once a second."""
        now = asyncio.get_running_loop().time()
        if now < self._missing_until.get(name, 0.0):
            raise UnknownTopicOrPartition(f"Topic {name!r} does not exist.")
        try:
            return await self._client.topic(name)
        except UnknownTopicOrPartition:
            self._missing_until[name] = now + LOOK_AGAIN_S
            raise

    def _add(self, topic: Topic, found: dict[int, list[TopicIdPartition]]) -> None:
        """Raises if a partition has no leader now, when all others are in `found`."""
        self._names[topic.id] = topic.name
        lacks: TryAgain | None = None
        for index in self._member.assigned.get(topic.id, ()):
            try:
                node, topic_partition = topic.leader(index), (topic.id, index)
            except (UnknownTopicOrPartition, LeaderNotAvailable) as error:
                self._client.forget(topic.name)
                lacks = error
                continue
            found.setdefault(node, []).append(topic_partition)
            self._homes[TopicPartition(topic.name, index)] = node, topic_partition
        if lacks is not None:
            raise lacks

    async def _wait_for_partitions(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._member.changed.wait()
        except TimeoutError:
            return

    def _take(self, node: int, answers: Iterable[tuple[TopicIdPartition, Any]]) -> None:
        failure: PostroadError | None = None
        must_send = False
        for topic_partition, answer in answers:
            if answer.error_code:
                failure = by_code(answer.error_code, answer.error_message)
                continue
            name = TopicPartition(self._names[topic_partition[0]], topic_partition[1])
            delivery = read_delivery(name, answer)
            self._arrived += delivery.messages
            for type_, offsets in ((AckType.GAP, delivery.gaps), (AckType.RELEASE, delivery.damaged)):
                for offset in offsets:
                    self._outbox(node).put(topic_partition, offset, type_, Terms())
                    must_send = True
            if delivery.damaged:
                failure = CorruptMessage(f"{name} is damaged at offset {delivery.damaged[0]}.")
        if must_send:
            self._outbox(node).send()
        if failure is not None and (not self._arrived or isinstance(failure, CorruptMessage)):
            raise failure

    # --- acknowledging -------------------------------------------------------------------------

    def acknowledge(
        self,
        message: ShareMessage,
        type_: AckType = AckType.ACCEPT,
        *,
        lock_ms: int = NOT_GIVEN,
        delay_ms: int = NOT_GIVEN,
        reason: str = "",
    ) -> None:
        """Noted; `commit` tells the node. The last word on a message counts.

        `lock_ms` is for how long a lock is renewed, `delay_ms` when a released message comes again, `reason`
        (1,000 characters at most) what the dead letter of a rejected one says. Only Postroad knows the last.
        """
        self._unsettled.append((message, self._put(message, type_, lock_ms, delay_ms, reason)))

    async def commit(self) -> list[Refusal]:
        """All that was acknowledged is durable, but for what was refused."""
        unsettled, self._unsettled = self._unsettled, []
        return await self._outcomes(unsettled)

    async def settle(
        self,
        messages: Iterable[ShareMessage],
        type_: AckType = AckType.ACCEPT,
        *,
        lock_ms: int = NOT_GIVEN,
        delay_ms: int = NOT_GIVEN,
        reason: str = "",
    ) -> list[Refusal]:
        """`acknowledge` and `commit` for these only. What many tasks settle at once goes together."""
        return await self._outcomes(
            [(message, self._put(message, type_, lock_ms, delay_ms, reason)) for message in messages]
        )

    async def pledge(self, messages: Iterable[ShareMessage], transaction: InTransaction) -> list[Refusal]:
        """They are accepted if the transaction commits, but for those that are refused and unchanged.

        Call `TransactionalProducer.acknowledge`, which knows its transaction and what to try again."""
        terms = Terms(transaction=transaction)
        return await self._outcomes(
            [(message, self._put_on(message, AckType.PLEDGE, terms)) for message in messages]
        )

    async def close(self) -> None:
        """What was acknowledged is committed, the rest is released, and the member leaves.

        A fetch that is under way is waited for: what it still brings must be given back, too.
        """
        await self.commit()
        await self._return_unseen()
        for node, session in self._sessions.items():
            await self._outboxes[node].close()
            await session.close()
        self._sessions.clear()
        await self._member.leave()

    async def _return_unseen(self) -> None:
        """What no poll has returned was not delivered: it does not count as an attempt."""
        await self._end_fetches()
        unseen = list(self._arrived)
        self._arrived.clear()
        await self.settle(unseen, AckType.RETURN)  # where it is refused the end of the session releases it

    def _put(
        self, message: ShareMessage, type_: AckType, lock_ms: int, delay_ms: int, reason: str = ""
    ) -> Outcome:
        return self._put_on(message, type_, Terms(type_ == AckType.RENEW, lock_ms, delay_ms, reason))

    def _put_on(self, message: ShareMessage, type_: AckType, terms: Terms) -> Outcome:
        node, topic_partition = self._homes[message.topic_partition]
        return self._outbox(node).put(topic_partition, message.offset, type_, terms)

    async def _outcomes(self, awaited: Sequence[tuple[ShareMessage, Outcome]]) -> list[Refusal]:
        nodes = {self._homes[message.topic_partition][0] for message, _ in awaited}
        for node in nodes:
            self._outboxes[node].send()
        return [
            Refusal(message, error)
            for message, outcome in awaited
            if (error := await asyncio.shield(outcome)) is not None
        ]

    # --- nodes ---------------------------------------------------------------------------------

    def _session(self, node: int) -> ShareSession:
        if node not in self._sessions:
            self._sessions[node] = ShareSession(self._client, node, self._member.group, self._member.id)
            self._outboxes[node] = Outbox(self._sessions[node])
        return self._sessions[node]

    def _outbox(self, node: int) -> Outbox:
        self._session(node)
        return self._outboxes[node]
