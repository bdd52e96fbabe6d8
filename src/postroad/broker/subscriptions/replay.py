"""`Replay`: rebuilds the ledgers that a log tells of from its records, in their order.

A snapshot may lie behind updates that were on their way when it was made, and older records may be gone: such
an update is read before the record that begins its generation, and waits for it.

Where a batch is damaged, what it held is read as costing messages a second delivery, never their only one:
what was accepted in it comes again; a ledger or a generation whose beginning it held begins at the first
message; a ledger whose end it held is back.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from postroad.broker.doubts import DamagedRange
from postroad.broker.record_log import RecordLog, Stored
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key, Update, decode, encode_key
from postroad.system.workers import Workers


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


class Replay:
    def __init__(self, placed: Callable[[int, Update], Update]) -> None:
        """`placed` is what the update at an offset of the log says of messages that are still there."""
        self.found: dict[Key, Kept] = {}
        self.damage: list[DamagedRange] = []  # what was passed over
        self._placed = placed
        self._early: dict[Key, list[tuple[int, Update]]] = {}  # read before their generation's beginning

    async def run(self, log: RecordLog, workers: Workers) -> None:
        """Raises what reading raises; call it again, and it goes on."""
        await log.load(self._take, workers, self._damaged)
        if self.damage:
            self._begin_lost()
        self._early.clear()

    def _take(self, stored: Stored) -> None:
        found = decode(stored.key, stored.value)
        if found is None:
            return
        key, update = found
        if update is None:
            self._early.pop(key, None)
            self.found.pop(key, None)
        else:
            self._tell(key, stored.offset, self._placed(stored.offset, update))

    def _damaged(self, damaged: DamagedRange) -> None:
        """A batch is lost; where it seems to have held a ledger's beginning, that is not forgotten."""
        self.damage.append(damaged)
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
        kept = self.found.get(key)
        return 0 if kept is None else kept.ledger.generation

    def _tell(self, key: Key, offset: int, update: Update) -> None:
        """Apply it, now or when its generation has begun."""
        kept = self.found.get(key)
        if not update.begins and update.generation > self._generation(key):
            self._early.setdefault(key, []).append((offset, update))
            return
        if kept is None:
            since, _ = self._early.get(key, [(offset, update)])[0]
            kept = self.found[key] = Kept(Ledger(key), since)
        kept.ledger.apply(update)
        if update.begins:
            for each in self._early.pop(key, ()):
                self._tell(key, *each)
