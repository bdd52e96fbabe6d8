"""Something that fails again and again: it is said once, counted from then on, and said when it is over."""

from __future__ import annotations

import logging


class Outage:
    __slots__ = ("_log", "_what", "failures")

    def __init__(self, log: logging.Logger, what: str) -> None:
        """`what` is written, or can't be: the first words of both lines."""
        self._log = log
        self._what = what
        self.failures = 0

    def failed(self, error: Exception) -> None:
        self.failures += 1
        if self.failures == 1:
            self._log.error(
                "%s can't be written: %s Further failures are counted, not logged.", self._what, error
            )

    def worked(self) -> None:
        if self.failures:
            self._log.warning("%s can be written again, after %d failures", self._what, self.failures)
            self.failures = 0
