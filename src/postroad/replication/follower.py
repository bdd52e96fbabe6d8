"""`Follower`: one log of a partition on a node that follows, and what each answer of the leader asks of it.

    may_fetch ──▶ (fetch: epoch, offset, last_epoch, log_start)
        answered ──▶ APPEND ──▶ appended, safe ──▶ may_fetch
        diverged ──▶ TRUNCATE ──▶ truncated ──▶ may_fetch
        diverged, refused, answered ──▶ RESET ──▶ reset ──▶ may_fetch
                └─▶ WAIT ──▶ until `wait_until_ms`

A fetch promises that everything below its offset is safe here. While something that was appended is not safe
yet, a fetch may read ahead (`may_read_ahead`): it promises `safe_offset`, and asks for what follows `offset`.
The log is cut only where an answer says that it has parted from the
leader's (`divergence.py`), never at the watermark. Each log has a state of its own: one that fails waits by
itself.

F1 an answer counts only if its fetch had the leader epoch and the offset that are here now: anything else was
   asked before a change of the leader or of the log.
F2 the watermark is not above what is safe here, nor above the leader's; it falls only when the log is cut
   below it.
F3 the log's start follows the leader's, but not above the watermark (L11).
F4 while the log is being cut nothing is fetched, whoever leads meanwhile.
F5 below its purged offset a log is copied only from a leader with the same one: where they differ it begins
   anew. What a leader has dropped below its purged offset were tombstones, and their values may lie here.
F6 what is fetched ahead is appended, or asked for again when all that came before is safe: a log of which
   something is on its way to the disk is not cut.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from postroad.errors import CorruptMessage, OffsetOutOfRange, StorageFailed, UnknownServerError
from postroad.replication.divergence import NO_EPOCH, EpochEnd, EpochEntries, truncation

NOBODY: Final = -1  # the partition has no leader


class Backoff(NamedTuple):
    first_ms: int
    max_ms: int

    def delay_ms(self, failures: int) -> int:
        """How long to wait after so many failures in a row, the first of which is 1."""
        return min(self.first_ms << min(failures - 1, 16), self.max_ms)


# The leader, or this node, has not heard of a change yet: the store's watch takes a few milliseconds.
SOON: Final = Backoff(10, 1_000)
# A disk has failed or is full, or data is damaged: that takes longer, and each try costs a read.
LATER: Final = Backoff(200, 5_000)

BACKOFFS: Final = {CorruptMessage.code: LATER, StorageFailed.code: LATER, UnknownServerError.code: LATER}


class Step(IntEnum):
    """What to do about an answer."""

    STALE = 0  # nothing: it answers a fetch from before a change, or one that read ahead asks for a cut
    APPEND = 1  # append its records, if it has any, and call `appended`; then `safe`
    TRUNCATE = 2  # cut the log at `target` and call `truncated`
    RESET = 3  # drop the whole log, let it start at `target` and call `reset`
    WAIT = 4  # fetch nothing before `wait_until_ms`


class Follower:
    __slots__ = (
        "_failures",
        "_is_changing",
        "_is_copying",
        "_leader_start",
        "_leader_watermark",
        "epoch",
        "last_epoch",
        "leader",
        "log_start",
        "offset",
        "purged",
        "safe_offset",
        "target",
        "target_purged",
        "wait_until_ms",
        "watermark",
    )

    def __init__(
        self,
        *,
        log_start: int,
        end_offset: int,
        last_epoch: int,
        safe_offset: int,
        watermark: int,
        purged: int = 0,
    ) -> None:
        """The log as it was found. `last_epoch` is that of its last record, or -1 if it has none; `purged`
        is below where tombstones may be missing."""
        self.leader = NOBODY
        self.epoch = NO_EPOCH
        self.log_start = log_start  # where the log should start: what is below may be deleted
        self.offset = end_offset  # where to fetch
        self.last_epoch = last_epoch
        self.safe_offset = safe_offset
        self.watermark = max(min(watermark, safe_offset), log_start)
        self.purged = purged
        self.target = end_offset  # where TRUNCATE and RESET go
        self.target_purged = purged  # what holds of the log after RESET
        self.wait_until_ms = 0
        self._leader_watermark = self._leader_start = 0
        self._failures = 0  # in a row
        self._is_changing = False  # TRUNCATE or RESET is under way
        self._is_copying = False  # this leader has sent what the log ends with

    # -- roles -----------------------------------------------------------------------------------------

    def follow(self, leader: int, epoch: int) -> None:
        """The partition has this leader in this epoch, or nobody: then nothing is fetched."""
        self.leader, self.epoch = leader, epoch
        self._leader_watermark = self._leader_start = 0  # as far as the new leader has said
        self._failures = self.wait_until_ms = 0
        self._is_copying = False

    def may_fetch(self, now_ms: int) -> bool:
        """Whether to ask the leader now, from `offset` on."""
        return (
            self.leader != NOBODY
            and self.safe_offset >= self.offset
            and now_ms >= self.wait_until_ms
            and not self._is_changing
        )

    def may_read_ahead(self, now_ms: int) -> bool:
        """Whether to ask the leader for what follows `offset` now, with a promise of `safe_offset` only."""
        return self._is_copying and now_ms >= self.wait_until_ms and not self._is_changing

    # -- answers ---------------------------------------------------------------------------------------

    def is_current(self, epoch: int, offset: int) -> bool:
        """F1: whether the answer to a fetch with this leader epoch and offset still means something."""
        return epoch == self.epoch and offset == self.offset and not self._is_changing

    def answered(self, epoch: int, offset: int, watermark: int, log_start: int, purged: int = 0) -> Step:
        """The leader of this epoch answered a fetch at this offset, and the logs have not parted.

        `purged` is the leader's purged offset where that is above the fetch, else 0.
        """
        if epoch != self.epoch or offset != self.offset or self._is_changing:
            return Step.STALE
        self._failures = 0
        if purged != self.purged and (offset < purged or offset < self.purged):  # F5
            if self.safe_offset < offset:
                return Step.STALE  # F6
            self._is_changing = True
            self.target, self.target_purged = log_start, purged
            return Step.RESET
        self._leader_watermark = watermark
        self._leader_start = log_start
        self._raise_watermark()
        return Step.APPEND

    def diverged(
        self, epoch: int, offset: int, parting: EpochEnd, epochs: EpochEntries, leader_start: int
    ) -> Step:
        """The answer has a diverging epoch: the logs have parted. `epochs` are those of this log.

        Where they parted before this log's start nothing of it can be kept: the leader may have lost what
        was deleted here since, and would name the same parting again and again.
        """
        if not self.is_current(epoch, offset) or self.safe_offset < offset:  # F6
            return Step.STALE
        self._failures = 0
        self._is_changing = True
        self.target = truncation(epochs, self.offset, parting)
        if self.target < self.log_start:
            self.target = leader_start
            return Step.RESET
        return Step.TRUNCATE

    def refused(self, epoch: int, offset: int, code: int, leader_start: int, now_ms: int) -> Step:
        """The answer has this error. `leader_start` is where the leader's log starts, -1 if the answer has
        none."""
        if not self.is_current(epoch, offset):
            return Step.STALE
        if code == OffsetOutOfRange.code and self._is_outside(leader_start):
            if self.safe_offset < offset:
                return Step.STALE  # F6
            self._is_changing = True
            self.target = leader_start
            return Step.RESET
        return self._wait(BACKOFFS.get(code, SOON), now_ms)

    def begins_at(self, base_offset: int) -> Step:
        """The leader's log starts inside of a batch, which begins here, and nothing of this log is to be
        kept: it begins there, too."""
        if self.safe_offset < self.offset:
            return Step.STALE  # F6
        self._is_changing = True
        self.target = base_offset
        return Step.RESET

    def failed(self, now_ms: int) -> Step:
        """What the leader sent can't be appended here: it is damaged, or the disk refused."""
        return self._wait(LATER, now_ms)

    def pause(self, until_ms: int) -> None:
        """Fetch nothing before: this node copies as fast as it may."""
        self.wait_until_ms = until_ms

    # -- the log ---------------------------------------------------------------------------------------

    def appended(self, end_offset: int, last_epoch: int) -> None:
        """The log ends here now, with a record of this epoch."""
        assert end_offset >= self.offset, "a leader's offsets go back"
        assert last_epoch >= self.last_epoch, "a leader's epochs go back (L12)"
        self.offset, self.last_epoch = end_offset, last_epoch
        self._is_copying = True

    def safe(self, safe_offset: int) -> None:
        """Everything below is synced with flush `sync`, else written."""
        if safe_offset > self.safe_offset:
            self.safe_offset = min(safe_offset, self.offset)
            self._raise_watermark()

    def truncated(self, end_offset: int, last_epoch: int) -> None:
        """The log was cut and ends here, with a record of this epoch, or has none (-1)."""
        self._is_changing = self._is_copying = False
        self.offset, self.last_epoch = end_offset, last_epoch
        self.safe_offset = min(self.safe_offset, end_offset)
        self.watermark = min(self.watermark, end_offset)

    def reset(self, start_offset: int) -> None:
        """The log was emptied and starts here."""
        self._is_changing = self._is_copying = False
        self.log_start = self.offset = self.safe_offset = self.watermark = start_offset
        self.last_epoch = NO_EPOCH
        self.purged = self.target_purged

    def check(self) -> None:
        """Asserts every invariant; for tests."""
        assert self.watermark <= self.safe_offset <= self.offset, "F2"
        assert self.log_start <= self.watermark, "F3"
        assert not self._is_changing or not self.may_fetch(self.wait_until_ms), "F4"

    # -- steps -----------------------------------------------------------------------------------------

    def _raise_watermark(self) -> None:
        watermark = min(self._leader_watermark, self.safe_offset)
        if watermark > self.watermark:
            self.watermark = watermark
        start = min(self._leader_start, self.watermark)
        if start > self.log_start:
            self.log_start = start

    def _is_outside(self, leader_start: int) -> bool:
        """Whether nothing of this log can be kept: it ends before the leader's starts, or has no record
        anyway.

        A log with records that ends beyond the leader's has parted from it, and is told so by a diverging
        epoch.
        """
        is_empty = self.last_epoch == NO_EPOCH and self.offset != leader_start
        return leader_start >= 0 and (self.offset < leader_start or is_empty)

    def _wait(self, backoff: Backoff, now_ms: int) -> Step:
        self._failures += 1
        self.wait_until_ms = now_ms + backoff.delay_ms(self._failures)
        return Step.WAIT
