"""Workers on a queue while its node is killed again and again, with a record of what was settled.

What a worker says of a message is *confirmed* when the commit was answered without an error, *open* when
the answer got lost: the node may have heard it, or not. An answer that was refused counts for nothing.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import NamedTuple

from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Message, ShareConsumer

from tests.clients.confluent import reach

from .load import COME_BACK_QUICKLY, TOPIC, Reachable

GROUP = "crew"
REJECT_EVERY = 25  # messages: so many are accepted for one that is always rejected
COMMIT_S = 5.0

# The node did not act on the acknowledgements: it knew of no session or lock, or never got them.
REFUSED = {
    KafkaError.INVALID_RECORD_STATE,
    KafkaError.SHARE_SESSION_NOT_FOUND,
    KafkaError.INVALID_SHARE_SESSION_EPOCH,
}


class Place(NamedTuple):
    partition: int
    offset: int


class Register:
    """What all workers together know of each message."""

    def __init__(self) -> None:
        self.confirmed: dict[Place, float] = {}  # since when, on the monotonic clock
        self.open: set[Place] = set()
        self.tried: set[Place] = set()  # answered, whatever came of it
        self.deliveries: Counter[Place] = Counter()
        self.overtook: list[Place] = []  # delivered before the message before it was answered
        self.came_back: list[Place] = []  # confirmed again, from a poll that began after it was confirmed
        self._lock = threading.Lock()

    def note_delivery(self, place: Place) -> None:
        with self._lock:
            self.deliveries[place] += 1
            if place.offset and place._replace(offset=place.offset - 1) not in self.tried:
                self.overtook.append(place)

    def note_try(self, places: set[Place]) -> None:
        with self._lock:
            self.tried |= places

    def note_answer(self, places: set[Place], polled_at: float, error: KafkaException | None) -> None:
        """A client may hold back what it was given before a crash. The node knows nothing of that any more
        and refuses it; so a message has come back when the node takes an answer for it twice."""
        with self._lock:
            if error is None:
                self.came_back += [p for p in places if self.confirmed.get(p, polled_at) < polled_at]
                self.confirmed.update(dict.fromkeys(places - self.confirmed.keys(), time.monotonic()))
            elif error.args[0].code() not in REFUSED:
                self.open |= places

    def settled(self) -> set[Place]:
        """Confirmed, or possibly so."""
        with self._lock:
            return self.confirmed.keys() | self.open


class Worker:
    """Accepts or rejects everything it is given, until it is told to stop."""

    def __init__(self, running: Reachable, register: Register) -> None:
        self._bootstrap, self._register = running.bootstrap, register
        self.source: ShareConsumer | None = None  # while it runs

    def run(self, done: threading.Event) -> None:
        source = ShareConsumer(
            {
                **reach(self._bootstrap),
                "group.id": GROUP,
                "share.acknowledgement.mode": "explicit",
                "max.poll.records": 100,
                "log_level": 2,
                **COME_BACK_QUICKLY,
            }
        )
        self.source = source
        source.subscribe([TOPIC])
        try:
            while not done.is_set():
                self._work(source)
        finally:
            source.close()

    def _work(self, source: ShareConsumer) -> None:
        polled_at = time.monotonic()
        try:
            messages = [message for message in source.poll(0.1) if not message.error()]
        except KafkaException:
            return  # the node is away
        if not messages:
            return
        for message in messages:
            self._register.note_delivery(Place(message.partition(), message.offset()))
            source.acknowledge(message, fate_of(message))
        self._commit(source, messages, polled_at)

    def _commit(self, source: ShareConsumer, messages: list[Message], polled_at: float) -> None:
        self._register.note_try({Place(message.partition(), message.offset()) for message in messages})
        told = {place.partition: error for place, error in source.commit_sync(COMMIT_S).items()}
        for partition, error in told.items():
            places = {Place(partition, m.offset()) for m in messages if m.partition() == partition}
            self._register.note_answer(places, polled_at, error)


def fate_of(message: Message) -> AcknowledgeType:
    return AcknowledgeType.REJECT if is_hopeless(message.value()) else AcknowledgeType.ACCEPT


def is_hopeless(value: bytes) -> bool:
    """By the number at its end, as `Load` writes it."""
    return int(value.split()[-1]) % REJECT_EVERY == 0
