"""What a subscription promises: locks, attempts, backoff, order, limits."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

NO_LIMIT: Final = 0  # of deliveries


class Order(StrEnum):
    NONE = "none"  # whatever is available
    KEY = "key"  # one message of a key at a time, in the log's order; other keys go on
    PARTITION = "partition"  # one message of the partition at a time


class Backoff(NamedTuple):
    """How long a message waits after a failed delivery; the wait grows by `factor` with each."""

    initial_ms: int = 0
    factor: float = 2.0
    max_ms: int = 600_000
    jitter: float = 0.0  # up to this share of the wait is taken off, at random

    def delay_ms(self, deliveries: int, chance: float) -> int:
        """After so many deliveries; `chance` lies in [0, 1)."""
        if not self.initial_ms:
            return 0
        try:
            full = min(self.initial_ms * self.factor ** (deliveries - 1), self.max_ms)
        except OverflowError:
            full = self.max_ms
        return int(full * (1 - self.jitter * chance))


class QueueSettings(NamedTuple):
    """Settings of one subscription, as far as its partitions care."""

    lock_ms: int = 30_000
    delivery_limit: int = 5  # NO_LIMIT: any number
    backoff: Backoff = Backoff()
    order: Order = Order.NONE
    fair: bool = False  # tenants with fewer messages in flight are served first
    at_most_once: bool = False  # an acquired message is done: whatever is said of it later changes nothing
    dead_letters: bool = True  # an archived message is copied before it is done
    partition_locks_max: int = 100_000
    member_locks_max: int = 100_000
    locks_max: int = 1_000_000  # of the whole subscription
    # What may be known of one partition. Beyond it the log is read on when some of that is done.
    waiting_max: int = 4_000_000  # ranges behind others of their key, with what they ask for: some 100 MB
    fair_window: int = 1_000_000  # messages that can go out, where one must be fair
    fair_ranges_max: int = 100_000  # the ranges of one tenant that these are
    delayed_max: int = 4_000_000  # ranges that wait for their time: some 100 MB
