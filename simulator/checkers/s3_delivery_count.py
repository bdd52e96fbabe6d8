"""S3: the delivery count rises by one with each delivery, and ends at the limit.

A delivery that was not settled when the node went down may not be counted, nor may one that was returned
unseen. Deliveries whose answer was lost count, and nobody saw them.
"""

from __future__ import annotations

from collections.abc import Iterator

from postroad.client.share_message import AckType
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Delivery, Outcome


def check(case: QueueCase) -> Iterator[Violation]:
    plan = case.history.plan
    for delivery in case.history.all():
        too_often = plan.delivery_limit and delivery.count > plan.delivery_limit and not plan.is_moved
        if delivery.count < 1 or too_often:
            yield Violation(
                "S3", f"{case.name}: {delivery}, the limit is {plan.delivery_limit}", delivery.came_at
            )
            return
    for deliveries in case.history.deliveries.values():
        for second in deliveries:
            if case.history.was_moved(0.0, second.came_at):
                continue  # a move begins to count anew
            violation = _check_one(case, [each for each in deliveries if each.value == second.value], second)
            if violation is not None:
                yield violation
                return


def _check_one(case: QueueCase, deliveries: list[Delivery], second: Delivery) -> Violation | None:
    before = [each for each in deliveries if each is not second and each.asked_at <= second.came_at]
    known = [each.count for each in before if each.came_at <= second.asked_at and _counts(case, each, second)]
    least = 1 + max(known, default=0)
    unseen = sum(each.asked_at <= second.came_at for each in case.history.lost_fetches)
    most = 1 + len(before) + unseen
    if least <= second.count <= most:
        return None
    text = f"{case.name}: {second}, which should be from {least} to {most}"
    return Violation("S3", text, second.came_at)


def _counts(case: QueueCase, first: Delivery, second: Delivery) -> bool:
    """Whether the first delivery is certainly counted when the second one comes."""
    if case.lost_between(first.asked_at, second.came_at):
        return False
    if any(saying.kind is AckType.RETURN for saying in first.sayings):
        return False
    if second.session.began <= first.came_at and second.came_at < first.forgotten_at:
        return True  # the node lived on since then, and led
    return any(
        saying.kind is AckType.RELEASE
        and saying.outcome is Outcome.DONE
        and saying.told_at <= second.asked_at
        and first.is_of(saying)
        for saying in first.sayings
    )
