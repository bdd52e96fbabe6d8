"""Python source, line by line, with the indentation kept by `with` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def __call__(self, *lines: str) -> None:
        self._lines += ["    " * self._depth + line if line else "" for line in lines]

    @contextmanager
    def block(self, head: str | None) -> Iterator[None]:
        """Lines below `head`, indented; without a head they stay where they are.

        An `else:` that stays empty is taken back; any other empty block gets a `pass`.
        """
        if head is None:
            yield
            return
        self(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            if head == "else:":
                self._lines.pop()
            else:
                self("pass")
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
