"""`Settlement`: what was decided about some messages, while it is on its way to the disk.

Until then they are neither held nor available. The caller appends `update`, waits until it is committed,
applies it to the ledger and calls `SharePartition.settled`; if it can't be written, `unsettle`. Without an
update there is nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

from postroad.queues.acknowledgement import ACCEPT, REJECT, RELEASE, RETURN
from postroad.queues.locks import DELIVERIES, TENANT
from postroad.queues.ranges import RangeSet
from postroad.queues.table import Row
from postroad.queues.update import Dying, Ended, Pledged, Reason, Released, Update

Doomed = tuple[int, int, Reason]  # first, last: to be archived without ever going out again


class Settlement:
    __slots__ = (
        "accepted",
        "available_at",
        "dead",
        "done",
        "doomed",
        "dying",
        "ended",
        "expired",
        "given_back",
        "late",
        "pledged",
        "rejected",
        "released",
        "returned",
        "rows",
        "update",
    )

    def __init__(self) -> None:
        self.update: Update | None = None
        self.rows: list[Row] = []  # locks that it ended
        self.doomed: list[Doomed] = []  # messages that no one held
        self.late: list[tuple[int, int, int]] = []  # accepted when no one held them: available from then on
        self.done: list[tuple[int, int]] = []
        self.dying: list[Dying] = []
        self.released: list[Released] = []
        self.available_at: list[int] = []  # monotonic ms, for each of `released`
        self.pledged: list[Pledged] = []  # then `rows` are of these, and of nothing else
        self.ended: list[Ended] = []
        # How many messages, for the tally. `expired`: their locks ended; `dead`: they are given up.
        self.accepted = self.given_back = self.rejected = self.returned = self.expired = self.dead = 0

    def count(self, kind: int, messages: int) -> None:
        """A member has said this of so many."""
        if kind == ACCEPT:
            self.accepted += messages
        elif kind == RELEASE:
            self.given_back += messages
        elif kind == REJECT:
            self.rejected += messages
        elif kind == RETURN:
            self.returned += messages

    @property
    def messages_held(self) -> int:
        """How many messages the locks were on."""
        return sum([row[1] - row[0] + 1 for row in self.rows])

    def accept(self, first: int, last: int) -> None:
        if self.done and self.done[-1][1] + 1 == first:
            self.done[-1] = (self.done[-1][0], last)
        else:
            self.done.append((first, last))

    def release(self, released: Released, available_at: int) -> None:
        self.released.append(released)
        self.available_at.append(available_at)

    def seal(self, generation: int, gaps: RangeSet, lead: tuple[int, int] | None) -> None:
        """Makes the update. What is done takes the gaps beside it along, so that the ledger's ranges grow
        together; `lead` is what is known to be gone from the ledger's start on."""
        if not (self.done or self.dying or self.released or self.pledged or self.ended):
            return
        done = [gaps.around(first, last) for first, last in self.done] if gaps.rows else self.done
        if lead is not None:
            done = [lead, *done]
        released = self.released
        if self.pledged:  # how often they were delivered stays known, whatever becomes of the transaction
            released = [Released(row[0], row[1], *row[DELIVERIES:TENANT]) for row in self.rows]
        self.update = Update(
            generation, None, done, released, self.dying, pledged=self.pledged, ended=self.ended
        )

    def ranges(self) -> Iterator[tuple[int, int]]:
        """All that it is about."""
        for row in self.rows:
            yield row[0], row[1]
        for first, last, _ in (*self.doomed, *self.late):
            yield first, last
