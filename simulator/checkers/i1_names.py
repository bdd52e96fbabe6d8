"""I1: what is published under a name is stored once, however often it is repeated and by whomever.

I2: another content under a name that is in use is refused, and not stored. A name is known for ten minutes by
the node's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Final

from simulator.violation import Violation
from simulator.workloads.attempt import Attempt
from simulator.workloads.log_history import LogHistory

KNOWN_MS: Final = 600_000
LATE_S: Final = 60.0  # a request whose answer was lost may take effect until then

Passed = Callable[[float, float], int]  # the most time that the node's clock may have shown to pass, in ms


def check(
    history: LogHistory, attempts: Sequence[Attempt], passed_ms: Passed, lost_until: float
) -> Iterator[Violation]:
    """`attempts`: all of them, in the order in which they ended."""
    yield from _check_once(history, attempts, passed_ms)
    yield from _check_content(history, attempts, passed_ms, lost_until)


def _check_once(history: LogHistory, attempts: Sequence[Attempt], passed_ms: Passed) -> Iterator[Violation]:
    for value, times in Counter(history.final.values()).items():
        name = value.split(b".")[0]
        asked = [attempt.asked for attempt in attempts if attempt.name == name]
        if times > 1 and passed_ms(min(asked), max(asked) + LATE_S) < KNOWN_MS:
            yield Violation("I1", f"{history.topic}: {value!r} is stored {times} times")
            return


def _check_content(
    history: LogHistory, attempts: Sequence[Attempt], passed_ms: Passed, lost_until: float
) -> Iterator[Violation]:
    for later in attempts:
        for first in attempts:
            if first.name != later.name or first.content == later.content:
                continue
            if first.asked <= lost_until or first.told > later.asked or later.told == inf:
                continue
            if passed_ms(first.asked, later.told) < KNOWN_MS:
                text = f"{history.topic}: {later.content!r} was stored under {later.name!r}, which was used"
                yield Violation("I2", f"{text} for {first.content!r}", later.told)
                return
