"""Python source, line by line, with the indentation kept by `with` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

WIDTH = 110
STEP = "    "


class Lines:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def __call__(self, *lines: str) -> None:
        for line in lines:
            self._lines += wrap(STEP * self._depth, line)

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


def wrap(indent: str, line: str) -> list[str]:
    """The line; if it is long, broken after its first bracket, or with brackets put around its value."""
    if len(indent + line) <= WIDTH:
        return [(indent + line).rstrip()]
    if line.startswith("if "):
        first, *others = line[3:-1].split(" and ")
        inner = [indent + STEP + test for test in (first, *(f"and {test}" for test in others))]
        return [f"{indent}if (", *inner, f"{indent}):"]
    head, body, tail = _break(line)
    arguments = _arguments(body)
    inner = wrap(indent + STEP, body) if len(arguments) == 1 else _fill(indent + STEP, arguments)
    return [indent + head, *inner, indent + tail]


def _break(line: str) -> tuple[str, str, str]:
    target, equals, value = line.partition(" = ")
    if equals and target.count(", ") > 1 and "(" not in target:
        return "(", target, f") = {value}"
    if "(" in line and not line.endswith("()"):
        start, stop = line.index("(") + 1, line.rindex(")")
        return line[:start], line[start:stop], line[stop:]
    return f"{target} = (", value, ")"


def _arguments(text: str) -> list[str]:
    """The parts between the commas that are in no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _fill(indent: str, arguments: list[str]) -> list[str]:
    """As many in a line as fit."""
    lines = [indent]
    for argument in arguments:
        if lines[-1] != indent and len(f"{lines[-1]} {argument},") > WIDTH:
            lines.append(indent)
        lines[-1] += f"{'' if lines[-1] == indent else ' '}{argument},"
    return lines
