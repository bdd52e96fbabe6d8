"""Who receives from a subscription by HTTP at this gateway. Kafka's consumers are known to the nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

SEEN_S: Final = 90.0  # longer than any receive waits
CONSUMERS_MAX: Final = 1000  # of a subscription; whoever came longest ago goes
SUBSCRIPTIONS_MAX: Final = 10_000
CLIENT_CHARACTERS_MAX: Final = 200


class Consumer(NamedTuple):
    """`client` is what it says it is: its User-Agent."""

    dialect: str
    address: str
    client: str
    user: str


class Seen(NamedTuple):
    """`connections`: streams that are open now."""

    consumer: Consumer
    last_seen_ms: int
    connections: int


class Consumers:
    """`note` at each receive, `connected` around each stream, `of` to see them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seen: dict[str, dict[Consumer, float]] = {}  # those that came last stand last
        self._open: dict[tuple[str, Consumer], int] = {}

    def note(self, subscription: str, consumer: Consumer) -> None:
        seen = self._seen.get(subscription)
        if seen is None:
            if len(self._seen) >= SUBSCRIPTIONS_MAX:
                del self._seen[next(iter(self._seen))]
            seen = self._seen[subscription] = {}
        seen.pop(consumer, None)
        seen[consumer] = self._clock()
        if len(seen) > CONSUMERS_MAX:
            del seen[next(iter(seen))]

    @contextmanager
    def connected(self, subscription: str, consumer: Consumer) -> Iterator[None]:
        key = subscription, consumer
        self.note(subscription, consumer)
        self._open[key] = self._open.get(key, 0) + 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
            self.note(subscription, consumer)

    def of(self, subscription: str) -> list[Seen]:
        """Those that were here within the last `SEEN_S` seconds, or have a stream open."""
        now = self._clock()
        seen = dict(self._seen.get(subscription, {}))
        for name, consumer in self._open:
            if name == subscription:
                seen[consumer] = now
        return [
            Seen(consumer, int(at * 1000), self._open.get((subscription, consumer), 0))
            for consumer, at in sorted(seen.items())
            if now - at <= SEEN_S
        ]


def consumer_of(dialect: str, address: str, client: str, user: str) -> Consumer:
    return Consumer(dialect, address, client[:CLIENT_CHARACTERS_MAX], user)
