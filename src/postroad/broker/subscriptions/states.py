"""What subscriptions are done with on one partition: its ledger, and how updates of it become durable.

An update is appended, committed, applied to its ledger, and only then does whoever decided it hear of it
(S4). So that a start needn't read for ever, a ledger is written as a whole now and then, and what lies before
the oldest of these snapshots is deleted:

N1 a ledger can be rebuilt from the records from `since` on. A snapshot tells the state up to the last applied
   record; updates that are still on their way lie before it in the log, so they, too, must be kept, and are
   applied when the snapshot has begun their ledger (`replay`).
N2 behind a tombstone nothing is written of the ledger that it ended, or a start would find it again. So while
   a ledger comes, goes or is corrected nobody finds it, and nothing else is written of its key.
N3 where a batch is damaged (`replay`) all ledgers are written anew, and the log begins behind the damage.
N4 a record counts only for messages that it was written for. It speaks of messages that were committed, and
   has the leader epoch of its time; if the log of the messages has since lost its end, a later epoch begins
   there, and what the record says of offsets from there on is said of messages that are gone. This follows
   from the two logs alone: nothing has to be written, so no second crash can undo it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from postroad.broker.partition import Partition
from postroad.broker.record_log import RecordLog
from postroad.broker.replies import Reply, replied
from postroad.broker.subscriptions.replay import Kept, Replay
from postroad.broker.turn import Turn
from postroad.config.sections import Groups
from postroad.errors import ApiError, CoordinatorNotAvailable, NotLeaderOrFollower, StorageFailed
from postroad.log.epochs import UNKNOWN
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key, Update, encode_update
from postroad.system.clock import Clock
from postroad.system.workers import Workers

SNAPSHOT_FACTOR: Final = 4  # times the last snapshot: so that snapshots are a fraction of what is written
RECORDS_MAX: Final = (
    100_000  # about so many are read at a start; idle ledgers that hold back more are written anew
)


class QueueStates:
    def __init__(
        self,
        messages: Partition,
        clock: Clock,
        turn: Turn,
        settings: Groups,
        by_group: dict[str, dict[Key, Ledger]],
    ) -> None:
        """`by_group` has all ledgers of this node, and gets those that are found here."""
        partition = messages.ledger
        assert partition is not None
        self.messages = messages
        self.loaded = False
        self.led_from = messages.log.end_offset  # messages before it were taken under other leaders
        self._snapshot_bytes = settings.share_state_snapshot_bytes  # updates since the last snapshot
        self._prune_records = settings.share_state_prune_records  # the log's start moves in steps of so many
        self._partition = partition
        self._log = RecordLog(partition, clock, turn, refusal)
        self._begins_at = partition.log.end_offset  # everything of former leaders lies before it
        self._kept: dict[Key, Kept] = {}
        self._by_group = by_group
        self._resigned = False
        self._changing: set[Key] = set()  # coming, going, corrected: that is on its way to the disk (N2)
        self._replay = Replay(self._placed)
        self._applied_to = 0  # below it everything is applied: one offset for each record that was committed

    async def load(self, workers: Workers) -> None:
        """Rebuild every ledger. Raises what reading raises; call it again.

        What former leaders wrote and this one has not seen committed may still be undone: it waits for that,
        or an acknowledgement that is repeated would be answered for a record that goes (S4).
        """
        await replied(partial(self._partition.when_committed, self._begins_at))
        await self._replay.run(self._log, workers)
        self._applied_to = self._partition.high_watermark
        for kept in self._replay.found.values():
            self._keep(kept)
        self.loaded = not self._resigned
        if self.is_damaged:
            for kept in list(self._kept.values()):
                self._snapshot(kept)

    @property
    def is_damaged(self) -> bool:
        """Whether batches had to be passed over when it was loaded: nobody knows what they held (N3)."""
        return bool(self._replay.damage)

    def _placed(self, offset: int, update: Update) -> Update:
        """What the record says of messages that are still there (N4)."""
        epoch, messages = self._partition.log.leader_epochs.at(offset), self.messages.log
        if not UNKNOWN < epoch < messages.last_epoch:
            return update
        _, end = messages.epoch_end(epoch)
        return update.below(end)

    def _keep(self, kept: Kept) -> None:
        key = kept.ledger.key
        if not self._resigned:
            self._kept[key] = kept
            self._by_group.setdefault(key.group, {})[key] = kept.ledger

    def _drop(self, key: Key) -> None:
        if self._kept.pop(key, None) is not None:
            of_group = self._by_group[key.group]
            del of_group[key]
            if not of_group:
                del self._by_group[key.group]

    def resign(self) -> None:
        """Another node leads the partition, or it is gone: nobody is served from here any more.

        Those who wait for a record hear of it from the partition.
        """
        self._resigned, self.loaded = True, False
        for key in list(self._kept):
            self._drop(key)

    def ledgers(self) -> Iterator[Ledger]:
        for kept in self._kept.values():
            yield kept.ledger

    def knows(self, key: Key) -> bool:
        """Whether there is a ledger, also while it is corrected or goes."""
        return key in self._kept

    def ledger(self, key: Key) -> Ledger | None:
        """The ledger to look at, also while it is corrected or goes."""
        kept = self._kept.get(key)
        return None if kept is None else kept.ledger

    def find(self, key: Key) -> Ledger | None:
        """The ledger to work with; None also while nobody may (N2)."""
        kept = self._kept.get(key)
        return None if kept is None or key in self._changing else kept.ledger

    # --- changes

    def create(self, key: Key, start: int, committed: Reply) -> None:
        """A ledger that begins at this offset; it is there when it is committed."""
        if key in self._changing:
            committed(_busy())
            return
        kept = Kept(Ledger(key), self._applied_to)

        def done(error: ApiError | None) -> None:
            self._changing.discard(key)
            if error is None:
                self._keep(kept)
            committed(error)

        self._changing.add(key)
        self._append(kept, Update(generation=1, start=start), done)

    def write(self, ledger: Ledger, update: Update, committed: Reply) -> None:
        """The update is applied when it is committed; then `committed` hears of it."""
        if self.find(ledger.key) is not ledger:
            committed(_busy())
            return
        self._append(self._kept[ledger.key], update, committed)

    def correct(self, ledger: Ledger, update: Update, committed: Reply) -> None:
        """Like `write`, but nobody finds the ledger until it is committed. If it can't be, call it again."""

        def done(error: ApiError | None) -> None:
            if error is None:
                self._changing.discard(ledger.key)
            committed(error)

        self._changing.add(ledger.key)
        self._append(self._kept[ledger.key], update, done)

    def remove(self, key: Key, committed: Reply) -> None:
        """The ledger is gone when that is committed; nobody finds it from now on."""
        if key in self._changing:
            committed(_busy())
            return
        if key not in self._kept:
            committed(None)
            return

        def done(error: ApiError | None) -> None:
            self._changing.discard(key)
            if error is None:
                self._applied_to += 1
                self._drop(key)
            committed(error)

        self._changing.add(key)
        self._log.append([(self._kept[key].key, None)], done)

    def _append(self, kept: Kept, update: Update, committed: Reply) -> None:
        value = encode_update(update)
        self._log.append([(kept.key, value)], partial(self._written, kept, update, len(value), committed))

    def _written(
        self, kept: Kept, update: Update, size: int, committed: Reply, error: ApiError | None
    ) -> None:
        if error is None:
            kept.ledger.apply(update)
            self._applied_to += 1
            kept.bytes += size
        committed(error)
        if kept.bytes > max(self._snapshot_bytes, SNAPSHOT_FACTOR * kept.snapshot_bytes):
            self._snapshot(kept)

    # --- snapshots

    def _snapshot(self, kept: Kept) -> None:
        if not kept.snapshotting:
            kept.snapshotting = True
            kept.bytes = kept.snapshot_bytes = 0
            self._write_part(kept, self._applied_to, kept.ledger.snapshots())

    def _write_part(self, kept: Kept, since: int, parts: Iterator[Update]) -> None:
        """The next part of a snapshot: a large one takes many turns, so that nobody waits for it."""
        if self.find(kept.ledger.key) is not kept.ledger:  # N2
            kept.snapshotting = False
            return
        part = next(parts, None)
        if part is not None and part.generation != kept.ledger.generation:
            kept.snapshotting = False  # of a former generation, with rows of this one
            return
        if part is None:
            kept.snapshotting = False
            kept.since = since
            self._prune()
            return
        value = encode_update(part)
        kept.snapshot_bytes += len(value)
        self._log.append([(kept.key, value)], partial(self._part_written, kept, since, parts))

    def _part_written(self, kept: Kept, since: int, parts: Iterator[Update], error: ApiError | None) -> None:
        if error is not None:
            kept.snapshotting = False  # another may succeed
            return
        self._applied_to += 1
        asyncio.get_running_loop().call_soon(self._write_part, kept, since, parts)

    def _prune(self) -> None:
        """Forget what no ledger needs; one that holds back too much is written anew first."""
        oldest = min(self._kept.values(), key=_since, default=None)
        since = self._applied_to if oldest is None else oldest.since
        if oldest is not None and self._applied_to - since > RECORDS_MAX:
            self._snapshot(oldest)
        start = self._partition.log.start_offset
        if since - start >= self._prune_records or any(start <= d.first < since for d in self._replay.damage):
            with contextlib.suppress(StorageFailed):  # it is tried again after the next snapshot
                self._partition.log.delete_before(since, self._partition.high_watermark)


def refusal(error: ApiError) -> ApiError:
    """Who settles messages is told to look for the partition's leader where this node is that no more."""
    return error if isinstance(error, NotLeaderOrFollower) else CoordinatorNotAvailable(str(error))


def _busy() -> CoordinatorNotAvailable:
    return CoordinatorNotAvailable(
        "The subscription's state of this partition is being made, corrected or removed."
    )


_since: Callable[[Kept], int] = lambda kept: kept.since  # noqa: E731
