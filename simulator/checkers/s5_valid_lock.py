"""S5: an acknowledgement counts if its member holds the message, and else changes nothing.

That a refused one changed nothing is seen in S1: a message whose accept was refused must end in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Delivery, Outcome, Saying, Stray

CLOCK_S: Final = 0.002  # the node counts in milliseconds


def check(case: QueueCase) -> Iterator[Violation]:
    for delivery in case.history.all():
        for saying in delivery.sayings:
            text = _fault(case, delivery, saying)
            if text:
                yield Violation("S5", f"{case.name}: {saying.kind.name} of {delivery} {text}", saying.told_at)
                return
    for strays in case.history.strays.values():
        for stray in strays:
            if stray.saying.outcome is Outcome.DONE and not (stray.may_hold or _was_on_its_way(case, stray)):
                text = f"{case.name}: {stray.member[:8]} accepted {stray.position}, which it never got"
                yield Violation("S5", text, stray.saying.told_at)
                return


def _was_on_its_way(case: QueueCase, stray: Stray) -> bool:
    """Whether the message had been handed out to the member, which had not looked at the answer yet."""
    return any(
        each.member == stray.member and each.asked_at <= stray.saying.told_at
        for each in case.history.of(stray.position, stray.value)
    )


def _was_settled(case: QueueCase, delivery: Delivery) -> bool:
    """Whether its member may have accepted the message blindly, while it was on its way."""
    return any(
        stray.member == delivery.member
        and stray.saying.may_count
        and stray.saying.told_at > delivery.asked_at
        for stray in case.history.strays.get(delivery.position, ())
    )


def _fault(case: QueueCase, delivery: Delivery, saying: Saying) -> str:
    if saying.outcome is Outcome.DONE:
        return _not_held(case, delivery, saying)
    was_moved = case.history.was_moved(delivery.asked_at, saying.told_at)
    if saying.no_lock and delivery.is_of(saying) and not was_moved and not _was_settled(case, delivery):
        until = delivery.surely_held_until(but_for=saying)
        earlier = [each for each in delivery.sayings if each is not saying and each.said_at <= saying.said_at]
        if saying.told_at <= until - CLOCK_S and all(each.outcome is Outcome.DONE for each in earlier):
            return f"was refused, although the lock lasts until {until:.3f} s"
    return ""


def _not_held(case: QueueCase, delivery: Delivery, saying: Saying) -> str:
    """Why the member can't have held the message; '' if it may."""
    if _came_again_to_the_same(case, delivery, saying):
        return ""
    until = delivery.may_be_held_until(but_for=saying)
    if saying.said_at > until + CLOCK_S:
        return f"counted at {saying.told_at:.3f} s, when its lock was over since {until:.3f} s"
    if case.history.was_moved(delivery.asked_at, saying.told_at):
        return ""
    for other in case.history.of(delivery.position, delivery.value):
        if other.asked_at >= delivery.came_at and other.came_at <= saying.said_at:
            since = f"{other.member[:8]} had it since {other.came_at:.3f} s"
            return f"counted at {saying.told_at:.3f} s, when {since}"
    return ""


def _came_again_to_the_same(case: QueueCase, delivery: Delivery, saying: Saying) -> bool:
    """Whether its member got the message once more, perhaps unseen: then it may hold that one. So it
    may where it got another one that has the offset since a power cut took this one."""
    again = any(
        other is not delivery and other.member == delivery.member and other.came_at >= delivery.came_at
        for other in case.history.deliveries[delivery.position]
        if other.asked_at <= saying.told_at
    )
    unseen = any(
        lost.member == delivery.member and lost.asked_at <= saying.told_at
        for lost in case.history.lost_fetches
    )
    return again or unseen
