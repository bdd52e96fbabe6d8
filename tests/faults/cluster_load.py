"""The load of the failure matrix, from clients that others wrote, and what must hold when a fault is over.

A producer of confluent-kafka (idempotent, acks=all, its other settings as they come), a consumer group that
commits, a crew of share consumers that accept and reject, and boto3 through the gateway:

    with ClusterLoad(running) as load:
        running.leader(TOPIC).kill()
        …
    load.check()  # nothing that was answered is lost, order and offsets are kept, nothing accepted came back
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, Self

from confluent_kafka import KafkaError, Message
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import RunningCluster
from tests.clients.confluent import reach
from tests.clients.conftest import Broker
from tests.clients.share import configure
from tests.clients.wait import until

from . import crew
from .crew import Place, Register, Worker
from .drained_queue import drain, everything_is_settled, hopeless
from .group_reader import GroupReader, committed_offsets
from .load import PARTITIONS, TOPIC, Load, assert_all_there_once_in_order, running_threads
from .sqs_load import VISIBILITY_S, Ledger, Receiver, Sender, client

WORKERS = 2
CALM_S = 120.0  # until all is worked on that was sent; locks that were lost end meanwhile
PROGRESS = 20  # messages of each partition, before a fault and after it
QUEUE = "letters.fifo"

# librdkafka's own: `Load` has quicker ones.
AS_THEY_COME = {
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 10_000,
    "linger.ms": 5,
    "queue.buffering.max.messages": 100_000,
    "log_level": 2,  # connections that end are what is tried here
}


class SteadyLoad(Load):
    """Sends a hundred messages a second to each partition, and notes when each was acknowledged."""

    def __init__(self, running: RunningCluster, settings: Mapping[str, Any]) -> None:
        super().__init__(running, "producer", {**AS_THEY_COME, **settings})
        self.times: list[list[float]] = [[] for _ in range(PARTITIONS)]
        self.waits: list[float] = []  # of each message, from its sending to its acknowledgement
        self._sent_at: list[list[float]] = [[] for _ in range(PARTITIONS)]

    def gap(self, partition: int, since: float) -> float:
        """The longest time without an acknowledgement that ended after this moment."""
        times = [*self.times[partition], time.monotonic()]
        return max(
            (after - before for before, after in pairwise(times) if after > since),
            default=0.0,
        )

    def _send(self, partition: int) -> None:
        self._sent_at[partition][self.sent[partition] :] = [time.monotonic()]
        super()._send(partition)

    def _pause(self) -> None:
        time.sleep(0.01)
        self.producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        super()._delivered(error, message)
        if error is None:
            partition, number, now = message.partition(), int(message.value().split()[1]), time.monotonic()
            self.times[partition].append(now)
            self.waits.append(now - self._sent_at[partition][number])


class SteadySender(Sender):
    """Some twenty messages a second."""

    def run(self, done: threading.Event) -> None:
        number = 0
        while not done.wait(0.05):
            number += self.send(number)


class ClusterLoad:
    """All clients together. The topic and the queue are made when it is."""

    def __init__(
        self,
        running: RunningCluster,
        topic_config: Mapping[str, str] | None = None,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        """`producer`: settings of librdkafka, where those that come with it would hide what is measured."""
        self._running = running
        admin = AdminClient(reach(running.bootstrap))
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=dict(topic_config or {}))])[TOPIC].result(
            60
        )
        ours = Broker(running.bootstrap, ours=True)
        configure(admin, ours, crew.GROUP, share_delivery_count_limit=0)
        self.producer = SteadyLoad(running, producer or {})
        self.reader = GroupReader(running)
        self.register = Register()
        self.ledger = Ledger()
        self.sqs: list[Sender | Receiver] = [self._sender(), self._receiver()] if running.http else []
        self._stack = ExitStack()
        self._senders = ExitStack()

    def __enter__(self) -> Self:
        self.workers = [Worker(self._running, self.register) for _ in range(WORKERS)]
        self._stack.enter_context(running_threads(self.reader, *self.workers, *self.sqs[1:]))
        self._senders.enter_context(running_threads(self.producer, *self.sqs[:1]))
        self.wait_for_progress()
        return self

    def __exit__(self, *failure: Any) -> None:
        """Wait until all that was sent has been worked on, unless something has failed before."""
        with self._stack, self._senders:
            if failure[0] is not None:
                return
            self.wait_for_progress()
            self._senders.close()
            self._running.wait_until_whole()
            until(self._is_read, "the group has read all messages", CALM_S)
            until(
                lambda: everything_is_settled(self.register, self.producer),
                "the crew has settled all messages",
                CALM_S,
            )
            until(lambda: self.ledger.sent <= self.ledger.worked_on, "SQS has delivered all", CALM_S)

    def wait_for_progress(self) -> None:
        """Return once each kind of client has got on from here."""
        before = self._progress()
        until(
            lambda: all(map(is_ahead, self._progress(), before)),
            "all clients get on",
            CALM_S,
        )

    def gap(self, partitions: Iterable[int], since: float) -> float:
        """The longest time for which a producer heard nothing of one of the partitions."""
        return max(self.producer.gap(partition, since) for partition in partitions)

    def check(self) -> None:
        """Hold what clients were told against what is there. The cluster must run, and be whole."""
        assert self.reader.broken == []
        assert_all_there_once_in_order(self._running, [self.producer], sent_min=PROGRESS)
        self._check_group()
        self._check_crew()
        assert self.ledger.came_back == []
        assert self.ledger.overtook == []
        assert [body for body, ids in self.ledger.ids.items() if len(ids) > 1] == [], (
            "sent once, stored twice"
        )
        self._running.wait_until_whole()

    def _check_group(self) -> None:
        found = committed_offsets(self._running)
        for partition, answered in self.reader.committed.items():
            assert answered <= found[partition] <= self.reader.tried[partition]

    def _check_crew(self) -> None:
        """S4: nothing that was accepted comes back; S1: nothing else is lost."""
        assert self.register.came_back == []
        left, buried = drain(self._running, hopeless(self.producer))
        assert not {Place(m.partition(), m.offset()) for m in left} & self.register.confirmed.keys()
        assert buried == hopeless(self.producer)

    def _progress(self) -> list[int]:
        return [
            *(len(times) for times in self.producer.times),
            sum(self.reader.committed.values()),
            len(self.register.confirmed),
            *([len(self.ledger.deleted)] if self.sqs else []),
        ]

    def _is_read(self) -> bool:
        return all(
            len(self.reader.values[partition]) >= sent for partition, sent in enumerate(self.producer.sent)
        )

    def _sender(self) -> SteadySender:
        sqs = client(self._running.http)
        attributes = {"VisibilityTimeout": str(VISIBILITY_S), "FifoQueue": "true"}
        self._queue: str = sqs.create_queue(QueueName=QUEUE, Attributes=attributes)["QueueUrl"]
        return SteadySender(sqs, self._queue, "boto", self.ledger)

    def _receiver(self) -> Receiver:
        return Receiver(client(self._running.http), self._queue, self.ledger)


def is_ahead(now: int, before: int) -> bool:
    return now >= before + PROGRESS
