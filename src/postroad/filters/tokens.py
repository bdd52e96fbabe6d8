"""The words of a filter, and where they stand."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

CHARACTERS_MAX: Final = 4096  # it fits in a URL beside everything else
NUMBER_CHARACTERS_MAX: Final = 40
SHOWN_CHARACTERS: Final = 20  # of what stands there instead

NAME, TEXT, NUMBER, SIGN, END = "name", "text", "number", "sign", "end"

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d][\w-]*)
    | (?P<quote>["'])
    | (?P<sign>!=|!~|<=|>=|==|[=<>~()\[\].,])""",
    re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'", "/": "/"}
_UNICODE: Final = re.compile(r"[0-9a-fA-F]{4}")


class FilterError(ValueError):
    """The filter can't be read. `column` counts from 1; the text names it, and what was expected there."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"Column {column}: {problem}.")
        self.column = column


class Token(NamedTuple):
    """`text` as it was written; of a text in quotes, what it says."""

    kind: str
    text: str
    column: int

    @property
    def shown(self) -> str:
        if self.kind == END:
            return "the end"
        short = self.text if len(self.text) <= SHOWN_CHARACTERS else self.text[:SHOWN_CHARACTERS] + "…"
        return f'the text "{short}"' if self.kind == TEXT else f"'{short}'"


def read(text: str) -> list[Token]:
    """All tokens, with an END behind the last. Raises FilterError."""
    if len(text) > CHARACTERS_MAX:
        raise FilterError(CHARACTERS_MAX + 1, f"a filter has at most {CHARACTERS_MAX} characters")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise FilterError(at + 1, f"'{text[at]}' means nothing here; texts stand in quotes")
        kind = str(found.lastgroup)
        if kind == "quote":
            content, end = _read_text(text, at)
            tokens.append(Token(TEXT, content, at + 1))
        else:
            end = found.end()
            if kind != "space":
                tokens.append(Token(kind, found.group(), at + 1))
        at = end
    return [*tokens, Token(END, "", len(text) + 1)]


def _read_text(text: str, begin: int) -> tuple[str, int]:
    """What stands between the quotes, and where it goes on behind them."""
    quote, at = text[begin], begin + 1
    content: list[str] = []
    while at < len(text):
        character = text[at]
        if character == quote:
            return "".join(content), at + 1
        if character == "\\":
            character, at = _read_escape(text, at)
        else:
            at += 1
        content.append(character)
    raise FilterError(begin + 1, f"the text that begins here has no closing {quote}")


def _read_escape(text: str, at: int) -> tuple[str, int]:
    letter = text[at + 1 : at + 2]
    if letter == "u" and (digits := _UNICODE.match(text, at + 2)):
        return chr(int(digits.group(), 16)), at + 6
    if letter in _ESCAPES and letter:
        return _ESCAPES[letter], at + 2
    raise FilterError(
        at + 1, r"a backslash in a text is followed by a quote, \, /, n, r, t or u and four digits"
    )
