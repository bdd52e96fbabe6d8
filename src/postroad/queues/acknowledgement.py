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

Run = tuple[int, int, int]  # first, last, type


class AckBatch(NamedTuple):
    first: int
    last: int
    types: Sequence[int]  # one for all, or one for each offset


def runs_of(batches: Sequence[AckBatch]) -> list[Run]:
    """The batches as ranges of one type each, ascending. Raises InvalidRequest.

    What is said of neighbours one by one is taken as one range: clients that acknowledge each message alone
    send hundreds of these at once.
    """
    runs: list[Run] = []
    run_first, end, run_kind = 0, -1, -1  # the run that may go on; -1: none has begun
    for first, last, types in batches:
        if not end < first <= last:
            raise InvalidRequest("Ranges that are acknowledged must ascend and not overlap.")
        if len(types) == 1:
            kind = types[0]
            if kind != run_kind or first != end + 1:
                if run_kind >= 0:
                    runs.append((run_first, end, run_kind))
                run_first, run_kind = first, kind
        elif len(types) == last - first + 1:
            if run_kind >= 0:
                runs.append((run_first, end, run_kind))
            *some, (run_first, _, run_kind) = _runs(first, types)
            runs += some
        else:
            raise InvalidRequest("An acknowledgement needs one type, or one for each offset.")
        end = last
    if run_kind >= 0:
        runs.append((run_first, end, run_kind))
    for _, _, kind in runs:
        if not GAP <= kind <= RENEW:
            raise InvalidRequest(f"There is no type of acknowledgement {kind}.")
    return runs


def _runs(first: int, types: Sequence[int]) -> list[Run]:
    runs = []
    for kind, same in groupby(types):
        count = sum(1 for _ in same)
        runs.append((first, first + count - 1, kind))
        first += count
    return runs
