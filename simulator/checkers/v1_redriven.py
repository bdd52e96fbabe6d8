"""V1: whatever dies and is sent back comes to its end at last: the subscription accepts it in some life.

V2: a copy is the message, whole, and comes to nobody but the subscription in which it died. There are no more
copies than letters, but for those that a redrive could not strike off. A key leads to one partition, so the
first of the copies is what was sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from postroad.wire import header_names
from simulator.violation import Violation
from simulator.workloads.redriven_history import Copy, RedrivenHistory


def check(history: RedrivenHistory, lost_until: float) -> Iterator[Violation]:
    """What was sent by `lost_until` may be gone: a power cut took what was not on the disk."""
    for message in history.sent.values():
        if message.is_acknowledged and not message.may_be_accepted and message.sent_at > lost_until:
            text = f"{history.topic}: {message.value!r} was never accepted, in {len(message.lives)} lives"
            yield Violation("V1", text)
            return
    yield from _check_copies(history, lost_until)


def _check_copies(history: RedrivenHistory, lost_until: float) -> Iterator[Violation]:
    for copy in history.copies:
        why = _fault(history, copy)
        if why:
            yield Violation("V2", f"{history.topic}: {copy.value!r} at {tuple(copy.position)} {why}")
            return
    first = {copy.value: copy.position for copy in sorted(history.copies, reverse=True)}
    for value, position in history.came_to_others:
        if first.get(value, position) < position and history.sent[value].sent_at > lost_until:
            text = f"{history.topic}: {value!r} was sent back, and came to another subscription as well"
            yield Violation("V2", text)
            return
    for value, count in Counter(copy.value for copy in history.copies).items():
        most = 1 + history.letters[value] + history.doubtful_runs
        if count > most and history.sent[value].sent_at > lost_until:
            text = f"{history.topic}: {value!r} is there {count} times, with {history.letters[value]} letters"
            yield Violation("V2", text)
            return


def _fault(history: RedrivenHistory, copy: Copy) -> str:
    sent = history.sent.get(copy.value)
    if sent is None:
        return "was never sent"
    own = [(name, value) for name, value in copy.headers if name != header_names.FOR]
    addressee = dict(copy.headers).get(header_names.FOR)
    if (copy.key, own) != (sent.key, list(sent.headers)):
        return "has another key or headers"
    if addressee not in (None, history.subscription.encode()):
        return f"is for {addressee!r}"
    return ""
