"""Which message of the source is which of the target: pairs of offsets, kept as runs.

A mirror of one partition sees two kinds of pairs. `Copies`: a message of the source, and its copy at the
target. `Returns`: a message that came to the source from the target, and the original there, as its origin
tells; it is not copied. Both kinds ascend on both sides.

P1 runs ascend on both sides, and no offset is in two runs of a kind.
P2 a run is dense (each offset from the first to the last on both sides), or it is short (`SPARSE_MAX`): then
   its pairs have to be read from a log to be known one by one.
P3 the target's offsets in a run of `Copies` are all copies: nothing else lies between them.

A position says: all before it is read. `translate` gives the same position in the other log: the first
message there that was not read. It is never ahead of an unread message. It is exact if nothing behind it was
read already: so it is wherever both logs have their messages in the same order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

SPARSE_MAX: Final = 1000  # messages that may have to be read for one position


class Pair(NamedTuple):
    source: int
    target: int


class Run(NamedTuple):
    """First and last offset on both sides, all included."""

    source: int
    source_last: int
    target: int
    target_last: int

    @property
    def is_dense(self) -> bool:
        return self.source_last - self.source == self.target_last - self.target


Details = Mapping[Run, Sequence[Pair]]
"""The pairs of runs that are not dense, as they were read."""

NO_DETAILS: Final[Details] = {}


class Unread(Exception):
    """The pairs of this run have to be read first."""

    def __init__(self, run: Run, *, of_copies: bool) -> None:
        super().__init__(run)
        self.run = run
        self.of_copies = of_copies


class _Pairs:
    """Runs of one kind. `changed` are those that grew or came since it was cleared, by their first offset."""

    def __init__(self, runs: Sequence[Run] = ()) -> None:
        self.runs: list[Run] = []
        self.changed: set[int] = set()
        for run in sorted(runs):
            self._add_run(run)
        self.changed.clear()

    def add(self, source: int, target: int) -> None:
        """What is known already, or does not ascend, changes nothing."""
        self._add_run(Run(source, source, target, target))

    def add_all(self, sources: Sequence[int], target: int) -> None:
        """Messages that lie one after the other at the target."""
        if sources and sources[-1] - sources[0] == len(sources) - 1:
            self._add_run(Run(sources[0], sources[-1], target, target + len(sources) - 1))
            return
        for number, source in enumerate(sources):
            self.add(source, target + number)

    def around(self, position: int, details: Details = NO_DETAILS) -> tuple[Pair | None, Pair | None]:
        """The last pair before a position at the source, and the first at or after it. May raise Unread."""
        number = bisect_left(self.runs, position, key=lambda run: run.source) - 1
        following = self.runs[number + 1] if number + 1 < len(self.runs) else None
        after = None if following is None else Pair(following.source, following.target)
        if number < 0:
            return None, after
        run = self.runs[number]
        if position > run.source_last:
            return Pair(run.source_last, run.target_last), after
        if run.is_dense:
            here = Pair(position, run.target + position - run.source)
            return Pair(here.source - 1, here.target - 1), here
        if run not in details:
            raise Unread(run, of_copies=isinstance(self, Copies))
        pairs = details[run]
        at = bisect_left(pairs, position, key=lambda pair: pair.source)
        return (pairs[at - 1] if at else None), (pairs[at] if at < len(pairs) else after)

    def forget_before(self, target: int) -> list[int]:
        """Without runs that end before this offset of the target; their first offsets. The last one stays."""
        gone = 0
        while gone < len(self.runs) - 1 and self.runs[gone].target_last < target:
            gone += 1
        firsts = [run.source for run in self.runs[:gone]]
        del self.runs[:gone]
        self.changed.difference_update(firsts)
        return firsts

    def _add_run(self, run: Run) -> None:
        if self.runs:
            last = self.runs[-1]
            if run.source_last <= last.source_last or run.target_last <= last.target_last:
                return
            overlaps = run.source <= last.source_last or run.target <= last.target_last
            if overlaps and run.is_dense:
                cut = max(last.source_last + 1 - run.source, last.target_last + 1 - run.target)
                run = run._replace(source=run.source + cut, target=run.target + cut)
                overlaps = False
            if overlaps or self._may_join(
                last, run
            ):  # of two runs that overlap one is known pair by pair only
                self.runs[-1] = last._replace(source_last=run.source_last, target_last=run.target_last)
                self.changed.add(last.source)
                return
        self.runs.append(run)
        self.changed.add(run.source)

    def _may_join(self, last: Run, run: Run) -> bool:
        raise NotImplementedError


def _is_next(last: Run, run: Run) -> bool:
    """Whether both are one dense run."""
    follows = run.source == last.source_last + 1 and run.target == last.target_last + 1
    return follows and last.is_dense and run.is_dense


class Copies(_Pairs):
    """Pairs of a message of the source and its copy."""

    def _may_join(self, last: Run, run: Run) -> bool:
        if _is_next(last, run):
            return True
        return run.target == last.target_last + 1 and run.target_last - last.target < SPARSE_MAX

    @property
    def end(self) -> int:
        """The offset of the target after the last copy; 0 if there is none."""
        return self.runs[-1].target_last + 1 if self.runs else 0

    def first_other(self, target: int) -> int:
        """The first offset of the target, from this one on, at which no copy is."""
        number = max(0, bisect_right(self.runs, target, key=lambda run: run.target) - 1)
        for run in self.runs[number:]:
            if run.target > target:
                break
            target = max(target, run.target_last + 1)
        return target


class Returns(_Pairs):
    """Pairs of a message that came to the source from the target, and its original."""

    def _may_join(self, last: Run, run: Run) -> bool:
        return _is_next(last, run) or run.source_last - last.source < SPARSE_MAX


class Translated(NamedTuple):
    """A position at the target. `again`: at most so many messages behind it were read already."""

    position: int
    again: int


def translate(
    position: int,
    copies: Copies,
    returns: Returns,
    start: int,
    end: int,
    details: Details = NO_DETAILS,
) -> Translated:
    """Where one goes on at the target who has read all before `position` at the source.

    `start` and `end` are those of the target's log. May raise Unread.
    """
    read, unread = copies.around(position, details)
    returned, _ = returns.around(position, details)
    end = max(end, copies.end)
    own = copies.first_other(max(start, -1 if returned is None else returned.target + 1))
    found = min(end, own, end if unread is None else max(start, unread.target))
    last_read = max(-1 if read is None else read.target, -1 if returned is None else returned.target)
    return Translated(found, max(0, last_read + 1 - found))
