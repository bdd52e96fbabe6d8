"""Runs: several messages of one key at once, for callers that work through them in their order.

A fetch that serves several callers may bring several messages of one key. Whoever gets the first of them gets
all that are handed out, or two callers would work on one key at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from postroad.gateway.receiver import Received

Key = tuple[int, bytes]


class Dealt(NamedTuple):
    share: list[Received]
    rest: list[Received]  # for other callers
    returned: list[Received]  # nobody may have them before the share is settled


def by_key(received: Iterable[Received]) -> list[Received]:
    """Key by key, each in its order; last those whose first message was delivered before, as SQS has it."""
    groups: dict[object, list[Received]] = {}
    for each in received:
        groups.setdefault(_key(each) or each.receipt, []).append(each)
    ordered = sorted(groups.values(), key=lambda group: group[0].message.delivery_count > 1)
    return [each for group in ordered for each in group]


def deal(received: Iterable[Received], max_messages: int, run_max: int) -> Dealt:
    """A caller's share of what came, in its order: `run_max` at most of one key."""
    dealt = Dealt([], [], [])
    taken: Counter[Key] = Counter()
    for each in received:
        key = _key(each)
        is_full = len(dealt.share) >= max_messages
        if key is not None and (taken[key] >= run_max or (is_full and taken[key])):
            dealt.returned.append(each)
        elif is_full:
            dealt.rest.append(each)
        else:
            dealt.share.append(each)
            if key is not None:
                taken[key] += 1
    return dealt


def _key(received: Received) -> Key | None:
    """Keys count within a partition."""
    message = received.message
    return None if message.key is None else (message.partition, message.key)
