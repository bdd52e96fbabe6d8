"""The ledgers of one partition of `__share_group_state`, and how their updates become durable.

An update is appended, committed, applied to its ledger, and only then does whoever decided it hear of it
(S4). So that a start needn't read for ever, a ledger is written as a whole now and then, and what lies before
the oldest of these snapshots is deleted:

N1 a ledger can be rebuilt from the records from `since` on. A snapshot tells the state up to the last applied
   record; updates that are still on their way lie before it in the log, so they, too, must be kept, and are
   applied when the snapshot has begun their ledger (`_early`).
N2 behind a tombstone nothing is written of the ledger that it ended, or a start would find it again. So while
   a ledger comes, goes or is corrected nobody finds it, and nothing else is written of its key.
N3 where a batch is damaged, what it held is read as costing messages a second delivery, never their only one:
   what was accepted in it comes again; a ledger or a generation whose beginning it held begins at the first
   message; a ledger whose end it held is back. All ledgers are then written anew, and the log begins behind
   the damage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Final

import msgspec

from postroad.broker.doubts import DamagedRange
from postroad.broker.partition import Partition
from postroad.broker.record_log import RecordLog, Stored
from postroad.broker.replies import Reply
from postroad.broker.turn import Turn
from postroad.config.sections import Groups
from postroad.errors import ApiError, CoordinatorNotAvailable
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key, Update, decode, encode_key, encode_update
from postroad.system.clock import Clock
from postroad.system.workers import Workers

SNAPSHOT_FACTOR: Final = 4  # times the last snapshot: so that snapshots are a fraction of what is written
RECORDS_MAX: Final = (
    100_000  # about so many are read at a start; idle ledgers that hold back more are written anew
)


class Kept:
    """A ledger and where the log can rebuild it from."""

    __slots__ = ("bytes", "key", "ledger", "since", "snapshot_bytes", "snapshotting")

    def __init__(self, ledger: Ledger, since: int) -> None:
        self.ledger = ledger
        self.key = encode_key(ledger.key)
        self.since = since
        self.bytes = 0  # of updates since the last snapshot
        self.snapshot_bytes = 0
        self.snapshotting = False


class QueueStates:
    def __init__(self, partition: Partition, clock: Clock, turn: Turn, settings: Groups) -> None:
        self.loaded = False
        self._snapshot_bytes = settings.share_state_snapshot_bytes  # updates since the last snapshot
        self._prune_records = settings.share_state_prune_records  # the log's start moves in steps of so many
        self._partition = partition
        self._log = RecordLog(partition, clock, turn)
        self._kept: dict[Key, Kept] = {}
        self._groups: dict[str, dict[Key, Ledger]] = {}  # the same, by group
        self._changing: set[Key] = set()  # coming, going, corrected: that is on its way to the disk (N2)
        self._early: dict[Key, list[tuple[int, Update]]] = {}  # read before their ledger's beginning (N1)
        self._damage: list[DamagedRange] = []  # what was passed over while it was loaded
        self._applied_to = 0  # below it everything is applied: one offset for each record that was committed

    async def load(self, workers: Workers) -> None:
        """Rebuild every ledger. Raises what reading raises; call it again."""
        await self._log.load(self._replay, workers, self._damaged)
        self._applied_to = self._partition.high_watermark
        if self.is_damaged:
            self._begin_lost()
        self._early.clear()
        self.loaded = True
        if self.is_damaged:
            for kept in list(self._kept.values()):
                self._snapshot(kept)

    @property
    def is_damaged(self) -> bool:
        """Whether batches had to be passed over when it was loaded: nobody knows what they held (N3)."""
        return bool(self._damage)

    def _replay(self, stored: Stored) -> None:
        found = decode(stored.key, stored.value)
        if found is None:
            return
        key, update = found
        if update is None:
            self._early.pop(key, None)
            self._drop(key)
        else:
            self._tell(key, stored.offset, update)

    def _damaged(self, damaged: DamagedRange) -> None:
        """A batch is lost (N3); where it seems to have held a ledger's beginning, that is not forgotten."""
        self._damage.append(damaged)
        for suspect in damaged.suspects:
            try:
                found = decode(suspect.key, suspect.value)
            except (msgspec.MsgspecError, ValueError):
                continue
            if found is None:
                continue
            key, update = found
            if update is not None and update.begins and update.generation > self._generation(key):
                self._tell(key, damaged.first, Update(update.generation, start=0))

    def _begin_lost(self) -> None:
        """Updates of generations whose beginning is nowhere: it was in a damaged batch."""
        for key, waiting in list(self._early.items()):
            for offset, update in list(waiting):
                if update.generation > self._generation(key):
                    self._tell(key, offset, Update(update.generation, start=0))

    def _generation(self, key: Key) -> int:
        kept = self._kept.get(key)
        return 0 if kept is None else kept.ledger.generation

    def _tell(self, key: Key, offset: int, update: Update) -> None:
        """While loading: apply it, now or when its generation has begun."""
        kept = self._kept.get(key)
        if not update.begins and update.generation > self._generation(key):
            self._early.setdefault(key, []).append((offset, update))
            return
        if kept is None:
            since, _ = self._early.get(key, [(offset, update)])[0]
            kept = Kept(Ledger(key), since)
            self._keep(kept)
        kept.ledger.apply(update)
        if update.begins:
            for each in self._early.pop(key, ()):
                self._tell(key, *each)

    def _keep(self, kept: Kept) -> None:
        key = kept.ledger.key
        self._kept[key] = kept
        self._groups.setdefault(key.group, {})[key] = kept.ledger

    def _drop(self, key: Key) -> None:
        if self._kept.pop(key, None) is not None:
            of_group = self._groups[key.group]
            del of_group[key]
            if not of_group:
                del self._groups[key.group]

    def ledgers(self) -> Iterator[Ledger]:
        for kept in self._kept.values():
            yield kept.ledger

    def groups(self) -> Collection[str]:
        return self._groups.keys()

    def of_group(self, group_id: str) -> list[Ledger]:
        return list(self._groups.get(group_id, {}).values())

    def knows(self, key: Key) -> bool:
        """Whether there is a ledger, also while it is corrected or goes."""
        return key in self._kept

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
        if since - start >= self._prune_records or any(start <= d.first < since for d in self._damage):
            self._partition.log.delete_before(since, self._partition.high_watermark)


def _busy() -> CoordinatorNotAvailable:
    return CoordinatorNotAvailable(
        "The subscription's state of this partition is being made, corrected or removed."
    )


_since: Callable[[Kept], int] = lambda kept: kept.since  # noqa: E731
