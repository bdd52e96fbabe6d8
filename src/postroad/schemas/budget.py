"""A bound on the work that a schema makes. Alternatives within alternatives are tried all with all, so a text
of a few kilobytes could keep a gateway busy for days."""

from __future__ import annotations


class TooComplex(Exception):
    """It would take too long."""


class Budget:
    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int = 1) -> None:
        """Raises TooComplex when all is spent."""
        self._left -= steps
        if self._left < 0:
            raise TooComplex
