"""L14: an acknowledged commit survives. Whoever reads it later finds it, or a later one.

A read may return what some commit wrote, unless another one certainly came between: it was handed over after
that one was acknowledged, and acknowledged before the read began. What a reader has seen counts as
acknowledged from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.group_history import NEVER, STALE_OFFSET, GroupHistory, Read, Write


def check(history: GroupHistory, cuts: Sequence[float]) -> Iterator[Violation]:
    """`cuts`: power cuts that may have taken the commits that were handed over before them."""
    for read in sorted(history.reads, key=lambda read: read.told):
        found = _check_read(history, read, _last(cuts, read.told))
        if found is not None:
            yield found
        _note(history, read)


def check_begins(history: GroupHistory, cuts: Sequence[float]) -> Iterator[Violation]:
    """A member begins where its group was; without a committed offset at the start of the log, which is 0."""
    if cuts:
        return  # the log may have lost messages, so that members were sent back to its start
    for stretch in history.stretches:
        read = Read(stretch.partition, stretch.begin, stretch.asked, stretch.told, stretch.who)
        found = _check_read(history, read, -NEVER)
        if found is not None and stretch.begin == 0:
            found = _check_read(history, read._replace(offset=None), -NEVER)
        if found is not None:
            yield found._replace(invariant="L5")


def _check_read(history: GroupHistory, read: Read, cut: float) -> Violation | None:
    nothing = Write(None, -NEVER, -NEVER)
    writes = [nothing, *history.writes[read.partition]]
    if read.offset is not None and read.offset >= STALE_OFFSET and cut > -NEVER:
        return None  # the group may have forgotten that the commit was stale
    candidates = [w for w in writes if w.offset == read.offset and w.handed < read.told]
    for write in candidates:
        if not any(_is_between(write, other, read, cut) for other in writes):
            return None
    known = [w for w in writes if w.told <= read.asked]
    last = max(known, key=lambda write: write.told)
    return Violation(
        "L14",
        f"{history.group}: {read.by} read {read.offset} for partition {read.partition} (asked at "
        f"{read.asked:.3f} s), "
        + (
            f"but {last.offset} was committed at {last.handed:.3f} s and acknowledged at {last.told:.3f} s"
            if candidates
            else "which nobody has committed"
        ),
        read.told,
    )


def _note(history: GroupHistory, read: Read) -> None:
    """What was read was committed; if it is clear by which commit, that one is in effect."""
    writes = [write for write in history.writes[read.partition] if write.offset == read.offset]
    if read.offset is not None and len(writes) == 1:
        writes[0].told = min(writes[0].told, read.told)


def _is_between(write: Write, other: Write, read: Read, cut: float) -> bool:
    return write.told <= other.handed and other.told <= read.asked and other.handed > cut


def _last(cuts: Sequence[float], moment: float) -> float:
    return max((cut for cut in cuts if cut <= moment), default=-NEVER)
