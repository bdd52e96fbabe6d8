"""S8: with order=key nothing later of a key comes while an earlier message of it has not ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Delivery, Position
from simulator.workloads.queue_topic import FoundMessage, expires

WAITED_MS: Final = 200  # a message that was sent so soon after another one of its key had to wait for it


def check(case: QueueCase) -> Iterator[Violation]:
    if not case.history.plan.by_key or case.cuts:
        return
    for earlier, later in _neighbours(case):
        for delivery in case.history.of(later.position, later.value):
            if not _may_have_ended(case, earlier, delivery):
                text = f"{case.name}: {delivery} came before {earlier.position} of the same key had ended"
                yield Violation("S8", text, delivery.came_at)
                return
            again = _comes_later(case, earlier, delivery)
            if again is not None:
                text = f"{case.name}: {again} came after {later.position} of the same key"
                yield Violation("S8", text, again.came_at)
                return


def _neighbours(case: QueueCase) -> Iterator[tuple[FoundMessage, FoundMessage]]:
    """Each message with a key, and the next one of that key in its partition."""
    last: dict[tuple[str, int, bytes], FoundMessage] = {}
    for topic in case.topics.values():
        for position in sorted(topic.found):
            found = topic.found[position]
            if found.key is None:
                continue
            lane = position.topic, position.partition, found.key
            if lane in last:
                yield last[lane], found
            last[lane] = found


def _may_have_ended(case: QueueCase, earlier: FoundMessage, delivery: Delivery) -> bool:
    """Whether the earlier message may have ended when this one of the later message came."""
    history, plan = case.history, case.history.plan
    if any(
        saying.ends() and saying.may_count and saying.said_at <= delivery.came_at
        for saying in history.sayings(earlier.position, earlier.value)
    ):
        return True
    if expires(earlier.headers):
        return True
    unseen = sum(lost.asked_at <= delivery.came_at for lost in history.lost_fetches)
    before = [
        each for each in history.of(earlier.position, earlier.value) if each.came_at <= delivery.came_at
    ]
    count = max((each.count for each in before), default=0)
    if not plan.is_last(count + unseen):
        return False
    return unseen > 0 or all(each.surely_held_until() < delivery.came_at for each in before)


def _comes_later(case: QueueCase, earlier: FoundMessage, delivery: Delivery) -> Delivery | None:
    position: Position = earlier.position
    for each in case.history.of(position, earlier.value):
        if each.asked_at >= delivery.came_at:
            return each
    return None


def waited(case: QueueCase) -> bool:
    """Whether a message waited for an earlier one of its key: that was delivered more than once meanwhile."""
    if not case.history.plan.by_key:
        return False
    return any(
        len(case.history.of(earlier.position, earlier.value)) > 1
        and later.timestamp <= earlier.timestamp + WAITED_MS
        for earlier, later in _neighbours(case)
    )
