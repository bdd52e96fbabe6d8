"""X1: a subscription leaves out a message only if it repeats one shortly before it that was delivered.

X2: what certainly is a duplicate does not come. It is certain where nobody used the id in the window before
the first message with it: a node that begins to read between the two would not know which of them is first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.identified import Identified


def check(topic: str, found: Sequence[Identified], window_ms: int) -> Iterator[Violation]:
    """`found`: all that lies there, each partition in its order."""
    earlier: dict[tuple[int, bytes], list[Identified]] = {}
    for message in found:
        before = earlier.setdefault((message.position.partition, message.identity), [])
        near = [each for each in before if abs(message.timestamp - each.timestamp) < window_ms]
        if not message.may_be_lost:
            why = _fault(message, near, before, window_ms)
            if why:
                text = f"{topic}: {tuple(message.position)} with {message.identity!r} {why}"
                yield Violation("X1" if not message.is_delivered else "X2", text)
                return
        before.append(message)


def _fault(
    message: Identified, near: Sequence[Identified], before: Sequence[Identified], window_ms: int
) -> str:
    if not message.is_delivered:
        return "" if any(each.is_delivered for each in near) else "was left out, and repeats nothing"
    if near and not near[0].may_be_lost and near[0].is_delivered and _is_clean(near[0], before, window_ms):
        return f"came, and repeats {tuple(near[0].position)}"
    return ""


def _is_clean(first: Identified, before: Sequence[Identified], window_ms: int) -> bool:
    """Whether no earlier message with its id lies within a window of it."""
    return not any(
        each.position < first.position and abs(first.timestamp - each.timestamp) < window_ms
        for each in before
    )
