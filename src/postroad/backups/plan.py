"""What a backup takes over from the one before it, and where it goes on.

A part is taken over as long as the log still has, or once had, just these batches, and nothing that ended
them can be missing from what follows:

- It lies above the log's start. What retention deleted goes out of the backup, too.
- Its last leader epoch is one of the log's, and ended at or above the part's end: a log that lost its end in
  a power cut, and took other messages at the same offsets, has other epochs there.
- The log may not have forgotten tombstones or transaction markers that lie behind the parts: the values that
  they deleted would come back. Then all is copied anew, as a follower would do.

A part that is small is not taken over if more has come: its batches are read again with what follows, so that
many small backups don't leave many small parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from postroad.backups.manifest import LogCopy, Part
from postroad.wire.backup import LogFacts

SMALL_BYTES: Final = 1024 * 1024


class Plan(NamedTuple):
    """The parts that are kept, and the offset from which on batches are to be read."""

    parts: tuple[Part, ...]
    offset: int


def plan(known: LogCopy | None, facts: LogFacts) -> Plan:
    kept = () if known is None else tuple(part for part in known.parts if part.next > facts.start)
    while kept and not _still_holds(kept[-1], facts):
        kept = kept[:-1]
    if not kept or kept[-1].next < facts.purged:
        return Plan((), facts.start)
    last = kept[-1]
    is_grown = facts.end > last.next
    if is_grown and last.bytes < SMALL_BYTES and last.first >= max(facts.start, facts.purged):
        return Plan(kept[:-1], last.first)
    return Plan(kept, max(last.next, facts.start))


def _still_holds(part: Part, facts: LogFacts) -> bool:
    return part.next <= min(epoch_end(facts.epochs, part.last_epoch, facts.end), facts.end)


def epoch_end(epochs: Sequence[tuple[int, int]], epoch: int, log_end: int) -> int:
    """Where the epoch ends; -1 if the log does not know it."""
    for number, (each, _) in enumerate(epochs):
        if each == epoch:
            return epochs[number + 1][1] if number + 1 < len(epochs) else log_end
    return -1
