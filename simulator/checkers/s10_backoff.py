"""S10: a message that failed waits before it comes again: for the backoff, or as long as its release says.

How long it waits is not written down: after a restart of the node, and from a new leader, it comes at once.
A member that leaves, or loses its session, gives back what it holds without a wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.client.share_message import AckType
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import NEVER, Delivery, Outcome

CLOCK_S: Final = 0.002  # the node counts in milliseconds


def check(case: QueueCase) -> Iterator[Violation]:
    if case.history.plan.is_moved:
        return  # operators change its backoff
    for first, second in case.pairs():
        if second.asked_at < first.came_at or second.session.began > first.came_at:
            continue
        if first.forgotten_at <= second.came_at:
            continue
        earliest = _available_at(case, first, second)
        if second.came_at < earliest - CLOCK_S:
            text = f"{case.name}: {second} came again before {earliest:.3f} s"
            yield Violation("S10", text, second.came_at)
            return


def _available_at(case: QueueCase, first: Delivery, second: Delivery) -> float:
    """The first moment at which the message could come again after this delivery, as far as is certain."""
    plan = case.history.plan
    said = [saying for saying in first.sayings if saying.may_count and saying.said_at <= second.came_at]
    if not said:
        lasted = min(first.session.proven_until, first.membership.proven_until) >= second.came_at
        return first.asked_at + first.lock_s + plan.backoff_s(first.count) if lasted else NEVER
    last = said[-1]
    if last.kind is not AckType.RELEASE or last.outcome is not Outcome.DONE or not first.is_of(last):
        return NEVER
    wait_s = plan.backoff_s(first.count) if last.delay_s is None else last.delay_s
    return last.said_at + wait_s
