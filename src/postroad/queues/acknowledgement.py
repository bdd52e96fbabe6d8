"""What a member says of messages that it holds, and whether that makes sense."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from postroad.errors import InvalidRequest

GAP: Final = 0  # there is no message at this offset
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4
RETURN: Final = 100  # our own: it was never shown to anybody, so it was not delivered
PLEDGE: Final = 101  # our own: accepted, if a transaction commits

KINDS: Final = frozenset({GAP, ACCEPT, RELEASE, REJECT, RENEW, RETURN})
KINDS_IN_TRANSACTIONS: Final = frozenset({PLEDGE})

# What counts when the lock is over, or forgotten, too (`late_accepts`).
NOTHING_LATE: Final[frozenset[int]] = frozenset()
LATE_ACCEPTS: Final = frozenset({ACCEPT})
LATE_CHANGES: Final = frozenset({ACCEPT, RELEASE, RENEW})

Run = tuple[int, int, int]  # first, last, type


class AckBatch(NamedTuple):
    first: int
    last: int
    types: Sequence[int]  # one for all, or one for each offset


def runs_of(batches: Sequence[AckBatch], kinds: frozenset[int] = KINDS) -> list[Run]:
    """The batches as ranges of one type each, ascending. Raises InvalidRequest, also for other types.

    What is said of neighbours one by one is taken as one range: clients that acknowledge each message alone
    send hundreds of these at once.
    """
    runs: list[Run] = []
    end = -1
    for first, last, types in batches:
        if not end < first <= last:
            raise InvalidRequest("Ranges that are acknowledged must ascend and not overlap.")
        if len(types) == 1:
            kind = types[0]
            if runs and first == end + 1 and kind == runs[-1][2]:
                runs[-1] = (runs[-1][0], last, kind)
            else:
                runs.append((first, last, kind))
        elif len(types) == last - first + 1:
            runs.extend(_runs(first, types))
        else:
            raise InvalidRequest("An acknowledgement needs one type, or one for each offset.")
        end = last
    for _, _, kind in runs:
        if kind not in kinds:
            raise InvalidRequest(_wrong_kind(kind, kinds))
    return runs


def _wrong_kind(kind: int, kinds: frozenset[int]) -> str:
    if kinds is KINDS_IN_TRANSACTIONS:
        return f"In a transaction messages can be accepted (type {PLEDGE}), and nothing else."
    if kind == PLEDGE:
        return "Accepting messages in a transaction needs the producer's id, epoch and transactional id."
    return f"There is no type of acknowledgement {kind}."


def _runs(first: int, types: Sequence[int]) -> list[Run]:
    runs = []
    for kind, same in groupby(types):
        count = sum(1 for _ in same)
        runs.append((first, first + count - 1, kind))
        first += count
    return runs
