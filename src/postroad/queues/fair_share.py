"""How many messages a member may take while others ask, too, and there are not enough for all.

What is available is shared out so that all hold equally many in the end, as far as that is possible: water
that is poured into vessels which are filled to different heights. Whoever holds more than the others already
gets little, but never nothing, so that nobody waits while messages do.

F1 members that ask one after the other, and hold nothing before, each get an equal part of what there is.
F2 a member gets at least one message, and no more than it asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ALONE_PART: Final = 2  # of an equal part, half: for one that holds much while nobody else waits


def fair_share(wanted: int, available: int, held: int, others: Sequence[int], others_wait: bool) -> int:
    """How many of the `available` messages a member gets that asks for `wanted` and holds `held`.

    `others`: how many each of the others holds. `others_wait`: one of them waits for messages now.
    """
    least = 1 if others_wait else -(-available // (ALONE_PART * (len(others) + 1)))
    return min(wanted, max(level(available, [held, *others]) - held, least, 1))


def level(available: int, held: Sequence[int]) -> int:
    """How many each holds when so many are poured onto those that hold least."""
    heights = sorted(held)
    total = available
    for count, height in enumerate(heights, 1):
        total += height
        if count == len(heights) or total <= heights[count] * count:
            return -(-total // count)
    raise AssertionError("nobody holds anything, not even nothing")
