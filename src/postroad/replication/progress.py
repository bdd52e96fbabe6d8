"""What a leader knows of each log, and of each follower in it.

A fetch at an offset is the follower's promise that everything below is safe there. How far it lags is counted
from its fetches, as Kafka does: it was caught up when it last had everything that the leader had at the fetch
before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

UNKNOWN: Final = -1  # no promise yet: below every offset, so that the watermark stands


class LogStart(NamedTuple):
    """A log at the moment in which its leadership begins."""

    start_offset: int  # where the leader epoch begins: the log's end at the election
    safe_offset: int  # everything below is synced with flush `sync`, else written
    watermark: int  # as far as this replica knew it while it followed


class LogProgress:
    """One log of the leader: its messages, or its ledger."""

    __slots__ = ("end_offset", "safe_offset", "start_offset", "watermark")

    def __init__(self, begin: LogStart) -> None:
        self.start_offset = begin.start_offset
        self.safe_offset = begin.safe_offset
        self.end_offset = max(begin.start_offset, begin.safe_offset)  # as far as the leader was told
        self.watermark = min(begin.watermark, begin.safe_offset)  # a power cut may have taken more


class Position:
    """Where a follower is in one log."""

    __slots__ = ("caught_up_ms", "log_start", "offset", "seen_end", "seen_ms")

    def __init__(self, now_ms: int) -> None:
        self.offset = UNKNOWN  # the promise: everything below is safe there
        self.log_start = UNKNOWN  # where its log starts, as it said last
        self.caught_up_ms = now_ms  # when it last had all that the leader had
        self.seen_end = 0  # the leader's end at the last fetch
        self.seen_ms = now_ms  # when that was

    def fetched(self, offset: int, end_offset: int, now_ms: int) -> None:
        """Take the promise of a fetch. It may be lower than the one before: the follower has cut its log."""
        if offset >= end_offset:
            self.offset = end_offset  # nobody has more of this epoch than its leader
            self.caught_up_ms = now_ms
        else:
            self.offset = offset
            if offset >= self.seen_end and self.seen_ms > self.caught_up_ms:
                self.caught_up_ms = self.seen_ms
        self.seen_end = end_offset
        self.seen_ms = now_ms


class FollowerProgress:
    """A follower in all logs of its partition."""

    __slots__ = ("broker_epoch", "is_counted", "node_id", "positions")

    def __init__(self, node_id: int, logs: int, now_ms: int) -> None:
        self.node_id = node_id
        self.broker_epoch = UNKNOWN  # the registration in whose name it fetches
        self.is_counted = False  # in the maximal ISR, so the watermark waits for it
        self.positions = [Position(now_ms) for _ in range(logs)]

    def registered(self, broker_epoch: int) -> None:
        """The follower's process is another one: what the one before promised, it may have lost (KIP-903).

        Its lag goes on, or one that is started again and again would hold up its partition for ever.
        """
        self.broker_epoch = broker_epoch
        for position in self.positions:
            position.offset = position.log_start = UNKNOWN

    def caught_up_now(self, now_ms: int) -> None:
        for position in self.positions:
            position.caught_up_ms = now_ms

    def seen_ms(self) -> int:
        """When the leader last had a fetch from it, for any of the logs."""
        return max(position.seen_ms for position in self.positions)
