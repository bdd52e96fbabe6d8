"""Workers in a test: no cluster, no waiting. Delays, backoffs and deadlines pass as if the time did.

    async def test_picture_that_is_broken_is_given_up():
        async with workers(app) as run:
            await app.publish("jobs", Job("broken.jpg"), delay="1h")
            await run.until_idle()
            assert [letter.reason for letter in run.dead("resize")] == ["OSError: broken"]

What decides who gets a message, when it comes again and when it is given up is the nodes' own code
(`queues`), and what reads delays and expiries out of headers is theirs, too. Each topic has one partition
here. Locks don't end: a job takes no time. What needs a real node is tested with one: the fixture
`postroad`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, NoReturn, cast

from postroad.broker.subscriptions.letter import Origin, letter_of
from postroad.broker.subscriptions.subscription import queue_settings
from postroad.client.share_message import ShareMessage
from postroad.cluster.group_config import settings_of, validate
from postroad.now import Now
from postroad.queues.acknowledgement import ACCEPT, REJECT, RELEASE
from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.ledger import Ledger
from postroad.queues.settings import Order
from postroad.queues.settlement import Settlement
from postroad.queues.share_partition import AckBatch, SharePartition
from postroad.queues.update import Key
from postroad.wire import header_names as names
from postroad.wire.records import Record, encode_batch
from postroad.wire.scan import scan
from postroad.wire.subscription_names import default_dead_letter_topic
from postroad.workers.app import App
from postroad.workers.handler import Handler
from postroad.workers.outcomes import AcceptedWith, Rejection, Release, Verdict
from postroad.workers.publishing import Outgoing
from postroad.workers.spans import Span, milliseconds
from postroad.workers.worker import Worker

DELIVERIES_MAX: Final = 100_000  # of one `until_idle`: workers that publish for each other would never end
TOPIC_ID: Final = bytes(16)


class Published:
    """A message of a topic, as a test looks at it."""

    def __init__(self, topic: str, record: Record) -> None:
        self.topic = topic
        self.payload = record.value
        self.key = None if record.key is None else record.key.decode("utf-8", "surrogateescape")
        self.headers = {
            name: (value or b"").decode("utf-8", "surrogateescape") for name, value in record.headers
        }

    @property
    def reason(self) -> str:
        """Why a dead letter died: the error, in words, or else `attempts`, `rejected`, `expired`,
        `invalid`."""
        return self.headers.get(names.REASON) or self.headers.get(names.DEAD_REASON, "")

    def __repr__(self) -> str:
        return f"<Published {self.topic} {self.payload!r}>"


class WorkerRun:
    """Made by `workers`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._topics: dict[str, list[Record]] = {}
        self._now = Now(1, int(time.time() * 1000))
        self._queues: dict[str, list[_Queue]] = {}
        self._handlers: dict[str, Handler] = {}

    # --- what a test calls ---------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The time as messages see it."""
        return datetime.fromtimestamp(self._now.wall_ms / 1000, UTC)

    async def until_idle(self) -> int:
        """All jobs are done, now and whenever they are due; how many deliveries that took."""
        delivered = 0
        while True:
            count = await self._due(delivered)
            delivered += count
            if count:
                continue
            due_ms = self._next_due_ms()
            if due_ms is None:
                return delivered
            self._pass_time(due_ms - self._now.ms)

    async def pass_time(self, span: Span) -> int:
        """Let time pass: what is due by then is done. Returns the number of deliveries."""
        until_ms = self._now.ms + milliseconds(span, "span")
        delivered = await self.due()
        while (due_ms := self._next_due_ms()) is not None and due_ms <= until_ms:
            self._pass_time(due_ms - self._now.ms)
            delivered += await self.due()
        self._pass_time(until_ms - self._now.ms)
        return delivered

    async def due(self) -> int:
        """What is due now is done; how many deliveries that took."""
        return await self._due(0)

    async def _due(self, before: int) -> int:
        """The same; AssertionError where with those before it were too many."""
        delivered = 0
        for worker in self._app.workers:
            while messages := self._acquire(worker):
                delivered += len(messages)
                if before + delivered > DELIVERIES_MAX:
                    raise AssertionError(f"there is still work after {DELIVERIES_MAX:,} deliveries")
                handle = self._handlers[worker.subscription].handle
                verdicts = await asyncio.gather(*(handle(message) for _, message in messages))
                for (queue, message), verdict in zip(messages, verdicts, strict=True):
                    self._say(queue, message, verdict)
        return delivered

    def published(self, topic: str) -> list[Published]:
        """All messages of the topic so far."""
        return [Published(topic, record) for record in self._topics.get(topic, [])]

    def dead(self, subscription: str) -> list[Published]:
        """The dead letters of a worker's subscription."""
        queues = self._queues.get(subscription)
        if queues is None:
            raise KeyError(f"no worker has the subscription {subscription!r}")
        return self.published(queues[0].dead_letter_topic)

    # --- the backend of the app ----------------------------------------------------------------

    async def open(self) -> None:
        for worker in self._app.workers:
            if worker.subscription not in self._queues:
                self._handlers[worker.subscription] = self._app.handler_of(worker)
                holdings = Holdings()
                self._queues[worker.subscription] = [
                    _Queue(worker, topic, holdings) for topic in worker.topics
                ]

    async def close(self) -> None:
        for handler in self._handlers.values():
            handler.close()

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        self._append(messages)

    async def join(self, worker: Worker) -> NoReturn:
        raise RuntimeError("in a test `until_idle` and `due` run the workers")

    # --- steps ---------------------------------------------------------------------------------

    def _append(self, messages: Sequence[Outgoing]) -> None:
        for topic, value, key, headers in messages:
            records = self._topics.setdefault(topic, [])
            records.append(Record(len(records), self._now.wall_ms, key, value, headers))

    def _acquire(self, worker: Worker) -> list[tuple[_Queue, ShareMessage]]:
        """What is due for the worker, as many as it runs at once."""
        found: list[tuple[_Queue, ShareMessage]] = []
        for queue in self._queues[worker.subscription]:
            records = self._topics.setdefault(queue.topic, [])
            queue.learn(records, self._now)
            found += [
                (queue, each) for each in queue.acquire(records, worker.concurrency - len(found), self._now)
            ]
            self._bury(queue)
        return found

    def _say(self, queue: _Queue, message: ShareMessage, verdict: Verdict) -> None:
        if isinstance(verdict, AcceptedWith):
            self._append(verdict.outgoing)
            queue.settle(message, ACCEPT, self._now)
        elif isinstance(verdict, Rejection):
            queue.settle(message, REJECT, self._now, reason=verdict.reason)
        elif isinstance(verdict, Release):
            queue.settle(message, RELEASE, self._now, delay_ms=verdict.delay_ms, reason=verdict.reason)
        else:
            queue.settle(message, ACCEPT, self._now)
        self._bury(queue)

    def _bury(self, queue: _Queue) -> None:
        letters = queue.bury(self._topics.setdefault(queue.topic, []), self._now)
        dead = self._topics.setdefault(queue.dead_letter_topic, [])
        dead += [letter._replace(offset=len(dead) + number) for number, letter in enumerate(letters)]

    def _next_due_ms(self) -> int | None:
        times = [queue.core.next_deadline() for queues in self._queues.values() for queue in queues]
        return min((at for at in times if at is not None), default=None)

    def _pass_time(self, ms: int) -> None:
        self._now = Now(self._now.ms + max(0, ms), self._now.wall_ms + max(0, ms))
        for queue in (queue for queues in self._queues.values() for queue in queues):
            queue.expire(self._now)


class _Queue:
    """A worker's subscription on one topic: the nodes' share partition, on a list."""

    def __init__(self, worker: Worker, topic: str, holdings: Holdings) -> None:
        settings = settings_of(validate(worker.configs))
        self.topic = topic
        self.dead_letter_topic = settings.dead_letter_topic or default_dead_letter_topic(worker.subscription)
        self._name = worker.subscription
        self._tenant_header = settings.fair_by.encode() or None
        self.core = SharePartition(
            Ledger(Key(worker.subscription, TOPIC_ID, 0)), queue_settings(settings), holdings, lambda: 0.0
        )

    def learn(self, records: Sequence[Record], now: Now) -> None:
        """Tell the core what it does not know of the topic yet."""
        frontier = self.core.frontier
        if frontier >= len(records):
            return
        entries = scan(
            bytes(encode_batch(records[frontier:], base_offset=frontier)),
            frontier,
            keys=self.core.settings.order is Order.KEY,
            tenant_header=self._tenant_header,
            subscription=self._name.encode(),
        )
        self._take(self.core.extend(len(records), cast("list[QueueEntry]", entries), now), now)
        self._take(self.core.pass_gaps(), now)

    def acquire(self, records: Sequence[Record], most: int, now: Now) -> list[ShareMessage]:
        if most <= 0:
            return []
        acquired = self.core.acquire(self._name, most, now)
        self._take(self.core.take_expired(now), now)
        return [
            ShareMessage(self.topic, 0, *records[offset], deliveries)
            for first, last, deliveries in acquired
            for offset in range(first, last + 1)
        ]

    def settle(
        self, message: ShareMessage, kind: int, now: Now, *, delay_ms: int | None = None, reason: str = ""
    ) -> None:
        batch = AckBatch(message.offset, message.offset, (kind,))
        self._take(self.core.acknowledge(self._name, [batch], now, delay_ms=delay_ms, reason=reason), now)

    def expire(self, now: Now) -> None:
        while (due := self.core.next_deadline()) is not None and due <= now.ms:
            self._take(self.core.expire(now), now)

    def bury(self, records: Sequence[Record], now: Now) -> list[Record]:
        """Dead letters of what has died, which is done with then."""
        letters: list[Record] = []
        for dead in list(self.core.ledger.dying):
            origin = Origin(self.topic, 0, self._name)
            letters += [
                letter_of(records[offset], dead, origin, now.wall_ms, 0)
                for offset in range(dead.first, dead.last + 1)
            ]
            self.core.ledger.apply(self.core.bury([(dead.first, dead.last)]))
        return letters

    def _take(self, settlement: Settlement | None, now: Now) -> None:
        if settlement is not None and settlement.update is not None:
            self.core.ledger.apply(settlement.update)
            self.core.settled(settlement, now)


@asynccontextmanager
async def workers(app: App) -> AsyncIterator[WorkerRun]:
    """The app publishes to memory, and its workers run when the test says so, for as long as the block
    runs."""
    run = WorkerRun(app)
    await run.open()
    app.use(run)
    try:
        yield run
    finally:
        app.use(None)
        await run.close()
