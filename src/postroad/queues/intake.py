"""How what the scanner finds in the log enters the backlog of a share partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from postroad.now import Now
from postroad.queues.backlog import Backlog
from postroad.queues.entry import UNREADABLE, QueueEntry
from postroad.queues.ranges import RangeSet
from postroad.queues.traits import Trait
from postroad.queues.update import Reason

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def take_in(partition: SharePartition, upto: int, entries: Sequence[QueueEntry], now: Now) -> None:
    """The messages from the frontier up to `upto` are these; the frontier is at `upto` afterwards.

    Expired ones are doomed, and those that ask for what can't be read, unless the subscription keeps no dead
    letters: then they go out at once, for otherwise nobody would ever see them. What the ledger knows as done
    or dying is passed over, and so is what is in flight, but for its place in its lane.
    """
    backlog, ledger = partition.backlog, partition.ledger
    # A burial, or what is settled after a change of order, raises the ledger's start past what was read: the
    # ledger has forgotten what is below.
    backlog.frontier = partition.frontier
    known = any(
        last is not None and last >= backlog.frontier for last in (ledger.done.last, ledger.dying.last)
    )
    in_flight = partition.in_flight_ranges(backlog.frontier, upto - 1)
    # Where nothing is kept of a message but when it is available: the short way, for there may be many.
    loose = not known and in_flight is None and backlog.lanes is None and not partition.settings.fair
    cursor = backlog.frontier
    for entry in entries:
        first, last, _, _, deliver_at_ms, expires_at_ms = entry
        if first < cursor:
            first = cursor
        if last >= upto:
            last = upto - 1
        if first > last:
            continue
        if first > cursor:
            _miss(backlog, cursor, first - 1, in_flight)
        cursor = last + 1
        if loose and not expires_at_ms:
            backlog.put(first, last, 0, _on_our_clock(deliver_at_ms, now), now.ms)
            continue
        for low, high in _left_to_do(partition, first, last) if known else ((first, last),):
            _meet(partition, entry, low, high, in_flight, now)
    if cursor < upto:
        _miss(backlog, cursor, upto - 1, in_flight)
    backlog.frontier = max(backlog.frontier, upto)


def _miss(backlog: Backlog, first: int, last: int, in_flight: RangeSet | None) -> None:
    """Nothing is there, or it must not go out (any longer); what was handed out before keeps its place."""
    for low, high, flies in _pieces(first, last, in_flight):
        if flies:
            backlog.meet_in_flight(Trait(low, high), None)
        else:
            backlog.gaps.add(low, high)


def _left_to_do(partition: SharePartition, first: int, last: int) -> list[tuple[int, int]]:
    ledger = partition.ledger
    undone = ledger.done.missing(first, last)
    return [piece for low, high in undone for piece in ledger.dying.missing(low, high)]


def _meet(
    partition: SharePartition, entry: QueueEntry, first: int, last: int, in_flight: RangeSet | None, now: Now
) -> None:
    """Pieces that are in flight and pieces that are not enter in the order of their offsets."""
    backlog = partition.backlog
    unreadable = entry.expires_at_ms == UNREADABLE
    if unreadable and not partition.settings.dead_letters:
        entry, unreadable = entry._replace(expires_at_ms=0), False
    tenant = partition.tenants.number(entry.tenant) if partition.settings.fair else 0
    trait = Trait(
        first, last, tenant, _on_our_clock(entry.deliver_at_ms, now), _on_our_clock(entry.expires_at_ms, now)
    )
    reason = Reason.INVALID if unreadable else Reason.EXPIRED
    is_doomed = unreadable or 0 < entry.expires_at_ms <= now.wall_ms
    for low, high, flies in _pieces(first, last, in_flight):
        piece = trait if in_flight is None else trait._replace(first=low, last=high)
        if not (flies or is_doomed):
            backlog.meet(piece, entry.key, now.ms)
            continue
        backlog.meet_in_flight(piece, entry.key)
        if not flies:
            backlog.doomed.append((low, high, reason))


def _pieces(first: int, last: int, in_flight: RangeSet | None) -> list[tuple[int, int, bool]]:
    if in_flight is None:
        return [(first, last, False)]
    pieces = [(low, high, True) for low, high in in_flight.cut(first, last)]
    pieces += [(low, high, False) for low, high in in_flight.missing(first, last)]
    return sorted(pieces)


def _on_our_clock(wall_ms: int, now: Now) -> int:
    """A wall-clock time on the monotonic clock; 0 stays 0, and what was long ago is at least 1."""
    return max(now.ms + wall_ms - now.wall_ms, 1) if wall_ms else 0
