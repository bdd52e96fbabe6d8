"""What each caller gets of the messages that a fetch brought: no more than it asked for, in number and bytes.

Runs are several messages of one key at once, for callers that work through them in their order.

A fetch that serves several callers may bring several messages of one key. Whoever gets the first of them gets
all that are handed out, or two callers would work on one key at the same time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from postroad.gateway import sizes

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


def take(received: deque[Received], max_messages: int, max_bytes: int) -> list[Received]:
    """Take a caller's share from what came: one message at least, however large it is."""
    share: list[Received] = []
    while received and len(share) < max_messages:
        max_bytes -= sizes.of_message(received[0].message)
        if max_bytes < 0 and share:
            break
        share.append(received.popleft())
    return share


def deal(received: Iterable[Received], max_messages: int, run_max: int, max_bytes: int) -> Dealt:
    """A caller's share of what came, in its order: `run_max` at most of one key."""
    dealt = Dealt([], [], [])
    taken: Counter[Key] = Counter()
    is_full = False  # what follows must not overtake the message that did not fit
    for each in received:
        key = _key(each)
        is_full = is_full or len(dealt.share) >= max_messages
        if not is_full and (key is None or taken[key] < run_max):
            max_bytes -= sizes.of_message(each.message)
            is_full = max_bytes < 0 and bool(dealt.share)
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
