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


class Dealt(NamedTuple):
    share: list[Received]
    rest: list[Received]  # for other callers
    returned: list[Received]  # nobody may have them before the share is settled


def deal(received: Iterable[Received], max_messages: int, run_max: int) -> Dealt:
    """A caller's share of what came, in its order: `run_max` at most of one key."""
    dealt = Dealt([], [], [])
    taken: Counter[tuple[int, bytes]] = Counter()
    for each in received:
        message = each.message
        key = None if message.key is None else (message.partition, message.key)
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
