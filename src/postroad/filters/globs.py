r"""Patterns such as `order-*-??`: `*` is any characters, `?` is one, and the whole text must match.

A pattern is a row of pieces with `*` between them. Each is looked for behind the one before it, and the first
place is as good as any: nothing is ever tried again, so the time is at most that of finding each piece once.
`\*`, `\?` and `\\` mean the character itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

# A piece with `?` is compared at each position of the text, so it costs up to its length for each.
MARKED_CHARACTERS_MAX: Final = 64

Find = Callable[[str, int], int]  # where the piece begins, from a position on; -1: nowhere


class GlobError(ValueError):
    """The pattern is refused; the text says why."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Raises GlobError."""
    pieces = [_Piece(each) for each in _split(pattern)]
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return lambda text: len(text) == first.length and first.stands_at(text, 0)
    middle = [piece for piece in pieces[1:-1] if piece.length]
    shortest = sum(piece.length for piece in pieces)

    def matches(text: str) -> bool:
        end = len(text) - last.length
        if len(text) < shortest or not first.stands_at(text, 0) or not last.stands_at(text, end):
            return False
        at = first.length
        for piece in middle:
            at = piece.find(text, at)
            if at < 0:
                return False
            at += piece.length
        return at <= end

    return matches


class _Piece:
    """What stands between two `*`: characters, None for one that may be any."""

    stands_at: Callable[[str, int], bool]
    find: Find

    def __init__(self, characters: list[str | None]) -> None:
        self.length = len(characters)
        if None in characters:
            if self.length > MARKED_CHARACTERS_MAX:
                raise GlobError(
                    f"a piece of a pattern with ? in it has at most {MARKED_CHARACTERS_MAX} characters"
                )
            text = "".join("." if each is None else re.escape(each) for each in characters)
            compiled = re.compile(text, re.DOTALL)
            self.stands_at = lambda text, at: at >= 0 and compiled.match(text, at) is not None
            self.find = lambda text, at: -1 if (found := compiled.search(text, at)) is None else found.start()
        else:
            literal = "".join(each or "" for each in characters)
            self.stands_at = lambda text, at: at >= 0 and text.startswith(literal, at)
            self.find = lambda text, at: text.find(literal, at)


def _split(pattern: str) -> list[list[str | None]]:
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            pieces[-1].append(next(characters, "\\"))
        elif character == "*":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "?" else character)
    return pieces
