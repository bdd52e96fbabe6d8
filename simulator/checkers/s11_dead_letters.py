"""S11: a dead letter is the whole message, dead for the reason that it tells; what was accepted has none.

After a crash a letter may have been written twice; a stop that is asked for leaves no second copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from postroad.client.share_message import AckType
from postroad.queues.update import Reason
from postroad.wire import header_names as names
from simulator.clock import EPOCH_MS
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Letter, Outcome, Position
from simulator.workloads.queue_topic import SentMessage, expires


def check(case: QueueCase) -> Iterator[Violation]:
    for position, letters in case.history.letters.items():
        for letter in letters:
            text = _fault(case, letter)
            if text:
                yield Violation(
                    "S11", f"{case.name}: the letter of {position} ({letter.value[:24]!r}) {text}"
                )
                return
        text = _too_many(case, letters)
        if text:
            yield Violation("S11", f"{case.name}: {position} {text}")
            return
    yield from _check_missing(case)


def _fault(case: QueueCase, letter: Letter) -> str:
    sent = case.topics[letter.position.topic].sent.get(letter.value)
    if sent is None:
        return "is of no message that was sent"
    for name, value in sent.headers:
        if letter.headers.get(names.SET_ASIDE.get(name, name)) != value:
            return f"lacks the header {name}"
    if letter.key != sent.key:
        return f"has the key {letter.key!r} and not {sent.key!r}"
    return _wrong_reason(case, letter, sent) or _was_accepted(case, letter)


def _wrong_reason(case: QueueCase, letter: Letter, sent: SentMessage) -> str:
    plan, history = case.history.plan, case.history
    reason = letter.text(names.DEAD_REASON)
    said = [each for each in history.sayings(letter.position, letter.value) if each.kind is AckType.REJECT]
    told = [each.reason for each in said if each.may_count]
    right = {
        Reason.REJECTED: bool(told) and letter.text(names.REASON) in told,
        Reason.ATTEMPTS: plan.is_moved or plan.is_last(int(letter.text(names.DEAD_DELIVERIES) or 0)),
        Reason.EXPIRED: expires(sent.headers),
        Reason.INVALID: False,
    }
    return "" if right.get(Reason(reason), False) else f"says {reason!r}, which it has no reason to"


def _was_accepted(case: QueueCase, letter: Letter) -> str:
    if case.history.plan.is_moved or case.cuts:
        return ""
    for saying in case.history.sayings(letter.position, letter.value):
        if saying.kind is AckType.ACCEPT and saying.outcome is Outcome.DONE:
            return f"was written although the accept was answered at {saying.told_at:.3f} s"
    return ""


def _too_many(case: QueueCase, letters: list[Letter]) -> str:
    before = [each for each in letters if int(each.text(names.DEAD_AT)) < EPOCH_MS + case.calm_at * 1000]
    if len(before) < 2 or case.history.plan.is_moved:
        return ""
    sent = case.topics[letters[0].position.topic].sent
    if case.crashed_since(min(sent[each.value].sent_at for each in before)):
        return ""
    return f"has {len(before)} letters without any crash"


def _check_missing(case: QueueCase) -> Iterator[Violation]:
    """A rejection that was answered has its letter."""
    plan = case.history.plan
    if not plan.dead_letters or plan.is_moved:
        return
    for delivery in case.history.all():
        position: Position = delivery.position
        for saying in delivery.sayings:
            if saying.kind is not AckType.REJECT or saying.outcome is not Outcome.DONE:
                continue
            letters = case.history.letters.get(position, ())
            if case.lost_between(saying.said_at, case.calm_at):
                continue
            if not any(letter.value == delivery.value for letter in letters):
                yield Violation(
                    "S11", f"{case.name}: {delivery} was rejected and has no letter", saying.told_at
                )
                return
