"""A node that kills itself (SIGKILL) at one step of the first transaction that comes so far.

    python -m tests.faults.dying_node STEP serve --config …

Before the process dies nothing is tidied up: what was handed to the log and not written is lost.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from postroad.broker.record_log import RecordLog
from postroad.broker.transactions import participants
from postroad.broker.transactions.coordinator import Coordinator
from postroad.broker.transactions.participants import Ending
from postroad.cli import main


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it was killed")


def before(owner: Any, name: str) -> None:
    """It dies instead of doing that."""
    setattr(owner, name, lambda *_, **__: die())


def after(owner: Any, name: str, is_it: Callable[..., object] = lambda *_: True, times: int = 1) -> None:
    """It dies when it has done that so often."""
    do, left = getattr(owner, name), [times]

    def done(*arguments: Any, **named: Any) -> None:
        do(*arguments, **named)
        if is_it(*arguments):
            left[0] -= 1
            if not left[0]:
                die()

    setattr(owner, name, done)


def holds(text: bytes) -> Callable[..., bool]:
    return lambda _, records, *__: any(text in (record.value or b"") for record in records)


STEPS: dict[str, Callable[[], None]] = {
    "Ongoing is staged": lambda: after(RecordLog, "append", holds(b'"Ongoing"')),
    "Prepare is staged": lambda: after(RecordLog, "append", holds(b'"Prepare')),
    "Prepare is committed": lambda: before(Coordinator, "_end"),
    "a marker is staged": lambda: after(participants, "mark"),
    "a marker is committed": lambda: after(Ending, "_marked"),
    "all markers are committed": lambda: after(Ending, "_marked", times=2),
    "offsets are committed": lambda: after(Ending, "_offsets_completed"),
    "Complete is staged": lambda: after(RecordLog, "append", holds(b'"Complete')),
    "Complete is committed": lambda: after(Coordinator, "_completed"),
}

if __name__ == "__main__":
    step, *arguments = sys.argv[1:]
    STEPS[step]()
    sys.argv[1:] = arguments
    main()
