"""A member of a subscription: it polls, and does with each message whatever consumers do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from postroad.client.client import Client
from postroad.client.share_consumer import Refusal
from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import (
    InvalidRecordState,
    InvalidRequest,
    InvalidShareSessionEpoch,
    PostroadError,
    ShareSessionNotFound,
)
from postroad.wire.share_requests import NOT_GIVEN
from simulator.workloads.queue_history import Delivery, Outcome, Position, QueueHistory, Saying, Stray
from simulator.workloads.watched_consumer import Fetched, WatchedConsumer
from simulator.workloads.workload import Stage

# The node says by these that it changed nothing. After any other error nobody knows.
REFUSALS: Final = (InvalidRecordState, InvalidRequest, InvalidShareSessionEpoch, ShareSessionNotFound)
SILENCE_S: Final = 4.0  # where sessions are short the node takes the member for dead by then
PATIENCE_S: Final = 0.3  # between two looks at whether it may begin


class Fate(StrEnum):
    ACCEPT = "accept"
    WORK = "work"  # accept it after a while, within the lock
    RELEASE = "release"
    DELAY = "delay"  # release it for later
    REJECT = "reject"
    RENEW = "renew"  # and accept it later
    FORGET = "forget"  # say nothing: its lock ends
    DAWDLE = "dawdle"  # accept it when the lock is over


WEIGHTS: Final[dict[Fate, int]] = {
    Fate.ACCEPT: 55,
    Fate.WORK: 15,
    Fate.RELEASE: 8,
    Fate.DELAY: 4,
    Fate.REJECT: 5,
    Fate.RENEW: 4,
    Fate.FORGET: 6,
    Fate.DAWDLE: 3,
}


class Later(NamedTuple):
    """To be accepted at that moment."""

    at: float
    delivery: Delivery
    message: ShareMessage


class QueueMember:
    """One after the other for as long as the scenario lasts: each stays for a while, then leaves, vanishes or
    falls silent."""

    def __init__(self, stage: Stage, history: QueueHistory) -> None:
        self._stage = stage
        self._world = stage.world
        self._random = stage.random
        self._history = history
        self._later: list[Later] = []
        self._arrived: dict[int, Delivery] = {}  # by the identity of a message that no poll has returned yet
        self.may_read = False  # the subscription is there, and nobody wants it without members
        self.is_inside = False  # it has joined, or is about to

    async def live(self, client: Client) -> None:
        while not self.may_read:  # noqa: ASYNC110 - they run on other loops
            await asyncio.sleep(PATIENCE_S)
        self.is_inside = True
        try:
            await self._read(client)
        finally:
            self.is_inside = False

    async def _read(self, client: Client) -> None:
        self._later = []
        self._arrived = {}
        plan, random = self._history.plan, self._random
        lost = self._history.lost_fetches
        consumer = WatchedConsumer(client, plan.name, plan.topics, lambda: self._world.now, lost, self._note)
        leaves_at = self._world.now + random.expovariate(1 / 25)
        try:
            await consumer.__aenter__()
            while self.may_read and (self._stage.calm or self._world.now < leaves_at):
                await self._take_some(consumer)
        except BaseException:
            await consumer.vanish()
            raise
        await self._end(consumer)

    async def _end(self, consumer: WatchedConsumer) -> None:
        chance = self._random.random() if self.may_read and not self._stage.calm else 0.0
        if chance < 0.6:
            await self._close(consumer)
            return
        if chance < 0.8:
            self._world.sometimes("queues: a member fell silent")
            await consumer.fall_silent()
            await asyncio.sleep(self._random.uniform(0.5, 1.5) * SILENCE_S)
            await self._accept_later(consumer, everything=True)
        await consumer.vanish()

    async def _close(self, consumer: WatchedConsumer) -> None:
        """What came and was not polled is returned, as if it had not been delivered."""
        said_at = self._world.now
        try:
            await consumer.close()
        finally:
            for delivery in self._arrived.values():
                delivery.said.append(Saying(AckType.RETURN, said_at))
                self._world.sometimes("queues: a message was returned unseen")

    # --- taking

    async def _take_some(self, consumer: WatchedConsumer) -> None:
        random = self._random
        lock_ms = NOT_GIVEN if random.random() < 0.8 else random.choice((300, 1_500, 4_000))
        messages = await consumer.poll(
            random.choice((1, 5, 20)), random.choice((50, 200, 600)), lock_ms=lock_ms
        )
        taken = [(self._arrived.pop(id(message)), message) for message in messages]
        if taken:
            await self._treat(consumer, taken)
        await self._accept_later(consumer)
        if not self._stage.calm and random.random() < 0.02:
            await self._accept_of_others(consumer)
        await asyncio.sleep(random.expovariate(1 / 0.05))

    def _note(self, consumer: WatchedConsumer, message: ShareMessage, fetched: Fetched) -> None:
        world, plan = self._world, self._history.plan
        delivery = Delivery(
            position=Position(message.topic, message.partition, message.offset),
            value=message.value or b"",
            key=message.key,
            headers=message.headers,
            timestamp=message.timestamp,
            count=message.delivery_count,
            member=consumer.member_id,
            asked_at=fetched.asked_at,
            came_at=fetched.came_at,
            lock_s=plan.lock_s if fetched.lock_ms == NOT_GIVEN else fetched.lock_ms / 1000,
            session=fetched.session,
            membership=fetched.membership,
            clock_jumps=world.seen["fault clock"],
        )
        self._history.add(delivery)
        self._arrived[id(message)] = delivery
        world.note(plan.name, "delivered", f"{delivery}")
        if delivery.count > 1:
            world.sometimes("queues: a message came again")

    # --- answering

    async def _treat(self, consumer: WatchedConsumer, taken: Sequence[tuple[Delivery, ShareMessage]]) -> None:
        fates: dict[Fate, list[tuple[Delivery, ShareMessage]]] = {}
        for delivery, message in taken:
            fate = Fate.ACCEPT
            if not self._stage.calm:
                (fate,) = self._random.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))
            fates.setdefault(fate, []).append((delivery, message))
        await asyncio.gather(*(self._meet(consumer, fate, some) for fate, some in fates.items()))

    async def _meet(
        self, consumer: WatchedConsumer, fate: Fate, taken: Sequence[tuple[Delivery, ShareMessage]]
    ) -> None:
        random, world = self._random, self._world
        lock_s = self._history.plan.lock_s
        match fate:
            case Fate.ACCEPT:
                await self._say(consumer, taken, AckType.ACCEPT)
            case Fate.RELEASE:
                await self._say(consumer, taken, AckType.RELEASE)
            case Fate.DELAY:
                await self._say(consumer, taken, AckType.RELEASE, delay_s=random.choice((0.2, 1.0, 3.0)))
            case Fate.REJECT:
                reason = random.choice(("", "no such customer"))
                await self._say(consumer, taken, AckType.REJECT, reason=reason)
            case Fate.RENEW:
                renewed_s = random.choice((0.0, 1.0, 3.0))
                await self._say(consumer, taken, AckType.RENEW, lock_s=renewed_s)
                self._plan(taken, world.now + random.uniform(0, 1.2) * (renewed_s or lock_s))
            case Fate.WORK:
                self._plan(taken, world.now + random.uniform(0, 1) * lock_s)
            case Fate.DAWDLE:
                self._plan(taken, world.now + random.uniform(1, 2) * lock_s)
            case Fate.FORGET:
                world.sometimes("queues: a lock was left to end")

    def _plan(self, taken: Sequence[tuple[Delivery, ShareMessage]], at: float) -> None:
        self._later += [Later(at, delivery, message) for delivery, message in taken]

    async def _accept_later(self, consumer: WatchedConsumer, everything: bool = False) -> None:
        due = [each for each in self._later if everything or each.at <= self._world.now]
        if due:
            self._later = [each for each in self._later if each not in due]
            await self._say(consumer, [(each.delivery, each.message) for each in due], AckType.ACCEPT)

    async def _say(
        self,
        consumer: WatchedConsumer,
        taken: Sequence[tuple[Delivery, ShareMessage]],
        kind: AckType,
        *,
        delay_s: float | None = None,
        lock_s: float = 0.0,
        reason: str = "",
    ) -> None:
        sayings: dict[Position, Saying] = {}
        for delivery, _ in taken:
            saying = Saying(kind, self._world.now, delay_s, lock_s or self._history.plan.lock_s, reason)
            delivery.said.append(saying)
            sayings[delivery.position] = saying
        refused = await consumer.settle(
            [message for _, message in taken],
            kind,
            lock_ms=int(lock_s * 1000) if lock_s else NOT_GIVEN,
            delay_ms=NOT_GIVEN if delay_s is None else int(delay_s * 1000),
            reason=reason,
        )
        self._hear(sayings, refused)

    def _hear(self, sayings: dict[Position, Saying], refused: Sequence[Refusal]) -> None:
        errors = {
            Position(each.message.topic, each.message.partition, each.message.offset): each.error
            for each in refused
        }
        for position, saying in sayings.items():
            error: PostroadError | None = errors.get(position)
            saying.told_at = self._world.now
            if error is None:
                saying.outcome = Outcome.DONE
            elif isinstance(error, REFUSALS):
                self._world.sometimes("queues: an acknowledgement was refused")
                saying.outcome = Outcome.REFUSED
                saying.no_lock = isinstance(error, InvalidRecordState)
            else:
                self._world.sometimes("queues: nobody knows of an acknowledgement")
            self._world.note(
                self._history.plan.name, f"{saying.kind.name} {position}", f"{saying.outcome} {error or ''}"
            )

    async def _accept_of_others(self, consumer: WatchedConsumer) -> None:
        """What another one got, or what it had itself long ago: it must be refused."""
        recent = list(self._history.deliveries.values())[-50:]
        if not recent:
            return
        delivery = self._random.choice(recent)[-1]
        position = delivery.position
        if delivery.member == consumer.member_id or not consumer.reads(position.topic, position.partition):
            return
        saying = Saying(AckType.ACCEPT, self._world.now)
        stray = Stray(position, delivery.value, consumer.member_id, saying, consumer.has_lost)
        self._history.strays.setdefault(position, []).append(stray)
        message = ShareMessage(*position, 0, None, None, (), 1)
        self._hear({position: saying}, await consumer.settle([message], AckType.ACCEPT))
