"""The audit log: who came in, who was refused what, and who changed what; a line of JSON for each.

    {"event": "denied", "peer": "10.0.0.7:50312", "principal": "User:shop", "operation": "write", …}

Logins and refusals are what anybody can cause, as often as he likes: of each kind there are so many lines a
second, then one that says how many were left out. Changes take a right, and are never left out. No line has a
password, a config's value, or anything of a message.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from typing import Final

from postroad.log_lines import FIELDS

LINES_A_SECOND: Final = 20  # of each kind of event
WINDOW_S: Final = 1.0
LIMITED: Final = ("login", "login failed", "denied")

audit = logging.getLogger("postroad.audit")


class Audit:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.events: Counter[str] = Counter()  # all there were, by event
        self._window_ends = 0.0
        self._written: Counter[str] = Counter()  # in this window, by event
        self._telling: asyncio.TimerHandle | None = None

    def note(self, event: str, peer: str, principal: str, **facts: object) -> None:
        self.events[event] += 1
        if event in LIMITED and not self._may_write(event):
            return
        _write({"event": event, "peer": peer, "principal": principal} | facts)

    def close(self) -> None:
        if self._telling is not None:
            self._tell()

    def _may_write(self, event: str) -> bool:
        if self._loop.time() >= self._window_ends and self._telling is None:
            self._window_ends = self._loop.time() + WINDOW_S
            self._written.clear()
        self._written[event] += 1
        if self._written[event] > LINES_A_SECOND and self._telling is None:
            self._telling = self._loop.call_at(self._window_ends, self._tell)
        return self._written[event] <= LINES_A_SECOND

    def _tell(self) -> None:
        """The window is over: say what was left out of it."""
        assert self._telling is not None
        self._telling.cancel()
        self._telling = None
        for event, count in self._written.items():
            if count > LINES_A_SECOND:
                _write({"event": "left out", "of": event, "lines": count - LINES_A_SECOND})
        self._written.clear()
        self._window_ends = 0.0


def _write(line: dict[str, object]) -> None:
    audit.info("%s", json.dumps(line, default=str), extra={FIELDS: line})
