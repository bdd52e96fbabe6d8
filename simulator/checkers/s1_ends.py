"""S1: every message ends accepted or dead, and none vanishes, whatever became of its consumers.

An operator's last seek, purge or creation decides from where on messages must have come to their end, and
only what was said after it counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from postroad.client.share_message import AckType
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import NEVER, Position
from simulator.workloads.queue_topic import SentMessage, expires


def check(case: QueueCase) -> Iterator[Violation]:
    waiting = {part: lag for part, lag in case.history.lags.items() if lag}
    if waiting:
        yield Violation("S1", f"{case.name} is not done after the calm: {waiting}")
        return
    vanished = [
        (position, sent)
        for position, sent in case.messages()
        if _is_held(case, position) and not _has_ended(case, position, sent)
    ]
    if vanished:
        position, sent = min(vanished, key=lambda each: each[0])
        deliveries = [str(each) for each in case.history.of(position, sent.value)]
        yield Violation(
            "S1",
            f"{case.name}: {len(vanished)} messages are neither accepted nor dead, the first {position} "
            f"({sent.value[:24]!r}), delivered {deliveries}",
        )


def _is_held(case: QueueCase, position: Position) -> bool:
    move = case.last_move
    return move is None or position.offset >= move.starts[position.topic_partition]


def _has_ended(case: QueueCase, position: Position, sent: SentMessage) -> bool:
    move = case.last_move
    since = NEVER if move is None else move.said_at
    history, plan = case.history, case.history.plan
    sayings = chain(history.sayings(position, sent.value), history.meant_for_others(position, sent.value))
    said = [each for each in sayings if each.may_count and each.told_at >= since]
    if any(saying.kind is AckType.ACCEPT for saying in said):
        return True
    if any(letter.value == sent.value for letter in history.letters.get(position, ())):
        return True
    deliveries = [each for each in history.of(position, sent.value) if each.came_at >= since]
    # Nobody saw what a lost answer brought; its lock may have ended after the last attempt.
    lost = sum(each.ended_at >= since for each in history.lost_fetches)
    count = max((each.count for each in deliveries), default=0) + lost
    may_be_dead = (
        any(saying.kind is AckType.REJECT for saying in said)
        or (bool(plan.delivery_limit) and (plan.is_last(count) or plan.is_moved))
        or expires(sent.headers)
    )
    # A letter that a power cut took while it was not on the disk is lost, as any other message.
    return may_be_dead and (not plan.dead_letters or case.lost_between(sent.sent_at, case.calm_at))
