"""T1: an acknowledged creation, deletion or growth of a topic stays in effect until the next change.

Nothing is claimed while a change is under way, or may be: one whose answer was lost may come late, and one
that another node has answered may not have reached the node that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.violation import Violation
from simulator.workloads.recreated_history import Change, ChangeKind, Look, RecreatedHistory

_ENDS: Final = (ChangeKind.CREATE, ChangeKind.DELETE)


def check(history: RecreatedHistory) -> Iterator[Violation]:
    ids: dict[int, bytes] = {}  # by the number of a creation: the id of the topic that it made
    for look in sorted(history.looks, key=lambda look: look.told):
        known = _known(history, look)
        if known is None:
            continue
        last, creation = known
        why = _fault(look, last, ids.get(creation))
        if why:
            text = f"{history.topic}: {last.kind} was acknowledged at {last.told:.3f} s, and {why}"
            yield Violation("T1", text, look.told)
            return
        if look.topic_id is not None:
            ids.setdefault(creation, look.topic_id)


def _known(history: RecreatedHistory, look: Look) -> tuple[Change, int] | None:
    """The change that is certainly in effect, and the number of the last creation; None if that is open."""
    done = [change for change in history.changes if change.told <= look.known]
    if not done:
        return None
    last = done[-1]
    for change in history.changes:
        is_open = change.asked <= look.told and change.told > look.known and change.over_at > last.asked
        if is_open and change.kind in _ENDS:
            return None
    creations = [n for n, each in enumerate(history.changes) if each.kind is ChangeKind.CREATE]
    return last, max((n for n in creations if history.changes[n].asked <= last.asked), default=-1)


def _fault(look: Look, last: Change, topic_id: bytes | None) -> str:
    if last.kind is ChangeKind.DELETE:
        return "" if look.topic_id is None else "the topic is there"
    if look.topic_id is None:
        return "the topic is gone"
    if topic_id not in (None, look.topic_id):
        return "another topic is in its place"
    return "" if look.partitions >= last.partitions else f"it has {look.partitions} partitions"
