"""Regular expressions for subscriptions, in time that grows with the topic's name only.

Kafka matches KIP-848 subscriptions with RE2, which never backtracks. Python's `re` does, and a pattern such
as `(a|a)*b` from any client could hold the whole node. So a pattern is parsed here into a small automaton
(`Automaton` below) that follows all alternatives at once; steps that were taken are remembered.

The subset: literals, `.`, `[…]` with ranges and `^`, `\\d \\w \\s` and their capitals, `(…)`, `(?:…)`, `|`,
`* + ? {m} {m,} {m,n}` (a `?` after them changes nothing for a whole match), `^` and `$`. The whole name
must match. Whatever else RE2 knows (flags, Unicode classes, `\\b`) is refused with
InvalidRegularExpression, and so is what RE2 refuses (back references, look-around).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from postroad.errors import InvalidRegularExpression

PATTERN_CHARACTERS_MAX: Final = 1024
STATES_MAX: Final = 1000  # bounds `((a{9}){9}){9}`, and the work for one character of a name
DEPTH_MAX: Final = 50
_REPEAT_MAX: Final = 1000  # as in RE2; the number of states is the tighter bound
_REMEMBERED_SETS_MAX: Final = 500

CharacterTest = Callable[[str], bool]


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Automaton:
    """Raises InvalidRegularExpression."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise InvalidRegularExpression(f"The pattern is longer than {PATTERN_CHARACTERS_MAX} characters.")
    return Automaton(pattern)


class Fragment(NamedTuple):
    """A piece of the automaton: where it begins, and the one state where it ends."""

    start: int
    end: int


class Automaton:
    """States with at most one character step each, and any number of free steps."""

    def __init__(self, pattern: str) -> None:
        self._tests: list[CharacterTest | None] = []  # by state: what its character step accepts
        self._steps: list[int] = []  # … where that step leads
        self._free: list[list[int]] = []  # … where it leads without a character
        self._anchors: dict[int, tuple[str, int]] = {}  # … where it leads at the name's start (^) or end ($)
        whole = _Parser(pattern, self).parse()
        self._end = whole.end
        self._start = self._closure({whole.start}, "^")
        self._known: dict[frozenset[int], dict[str, frozenset[int]]] = {}

    def matches(self, name: str) -> bool:
        states = self._start
        for character in name:
            if not states:
                return False
            states = self._next(states, character)
        return self._end in self._closure(states, "$" if name else "^$")

    # --- building ---

    def state(self) -> int:
        if len(self._free) >= STATES_MAX:
            raise InvalidRegularExpression("The pattern is too complex: use fewer or smaller repetitions.")
        self._tests.append(None)
        self._steps.append(-1)
        self._free.append([])
        return len(self._free) - 1

    def character(self, test: CharacterTest) -> Fragment:
        start, end = self.state(), self.state()
        self._tests[start] = test
        self._steps[start] = end
        return Fragment(start, end)

    def anchor(self, kind: str) -> Fragment:
        start, end = self.state(), self.state()
        self._anchors[start] = (kind, end)
        return Fragment(start, end)

    def nothing(self) -> Fragment:
        state = self.state()
        return Fragment(state, state)

    def link(self, start: int, end: int) -> None:
        self._free[start].append(end)

    # --- running ---

    def _next(self, states: frozenset[int], character: str) -> frozenset[int]:
        known = self._known.get(states)
        if known is None:
            if len(self._known) >= _REMEMBERED_SETS_MAX:
                self._known.clear()
            known = self._known[states] = {}
        following = known.get(character)
        if following is None:
            following = known[character] = self._closure(self._stepped(states, character))
        return following

    def _stepped(self, states: frozenset[int], character: str) -> set[int]:
        stepped = set()
        for state in states:
            test = self._tests[state]
            if test is not None and test(character):
                stepped.add(self._steps[state])
        return stepped

    def _closure(self, states: Iterable[int], anchors: str = "") -> frozenset[int]:
        """With all that is reached by free steps, and by those of the anchors that hold here."""
        reached = set(states)
        todo = list(reached)
        while todo:
            state = todo.pop()
            kind, behind = self._anchors.get(state, ("", -1))
            following = [behind] if kind and kind in anchors else self._free[state]
            for other in following:
                if other not in reached:
                    reached.add(other)
                    todo.append(other)
        return frozenset(reached)


class _Parser:
    """Recursive descent; a repetition is parsed again for each copy of what it repeats."""

    def __init__(self, pattern: str, automaton: Automaton) -> None:
        self._pattern = pattern
        self._automaton = automaton
        self._at = 0
        self._depth = 0

    def parse(self) -> Fragment:
        whole = self._alternatives()
        if self._at < len(self._pattern):
            raise self._wrong("an unmatched )")
        return whole

    def _alternatives(self) -> Fragment:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._wrong("too many nested groups")
        start, end = self._automaton.state(), self._automaton.state()
        while True:
            sequence = self._sequence()
            self._automaton.link(start, sequence.start)
            self._automaton.link(sequence.end, end)
            if not self._skip("|"):
                break
        self._depth -= 1
        return Fragment(start, end)

    def _sequence(self) -> Fragment:
        start, end = self._automaton.nothing()
        while self._at < len(self._pattern) and self._peek() not in "|)":
            piece = self._repeated()
            self._automaton.link(end, piece.start)
            end = piece.end
        return Fragment(start, end)

    def _repeated(self) -> Fragment:
        begins = self._at
        atom = self._atom()
        ends = self._at
        counts = self._counts()
        if counts is None:
            return atom
        least, most = counts
        after = self._at
        start, end = self._automaton.nothing()
        for copy in range(max(least, most or 0, 1)):
            piece = atom if copy == 0 else self._copy(begins, ends)
            self._automaton.link(end, piece.start)
            if copy >= least:
                self._automaton.link(end, piece.end)
            if most is None and copy >= least - 1:
                self._automaton.link(piece.end, piece.start)
            end = piece.end
        self._at = after
        return Fragment(start, end) if most != 0 else self._automaton.nothing()

    def _copy(self, begins: int, ends: int) -> Fragment:
        self._at = begins
        piece = self._atom()
        assert self._at == ends
        return piece

    def _counts(self) -> tuple[int, int | None] | None:
        """How often: at least, at most (None: without limit); None if the atom stands alone."""
        character = self._peek()
        counts: tuple[int, int | None]
        if character in ("*", "+", "?"):
            self._at += 1
            counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        elif character == "{":
            counts = self._braces()
        else:
            return None
        self._skip("?")
        if self._peek() in ("*", "+", "?", "{") and self._peek():
            raise self._wrong("a repetition of a repetition")
        return counts

    def _braces(self) -> tuple[int, int | None]:
        close = self._pattern.find("}", self._at)
        text = self._pattern[self._at + 1 : close] if close > 0 else ""
        least, comma, most = text.partition(",")
        if not _is_number(least) or (most and not _is_number(most)):
            raise self._wrong("a { without counts; write \\{ for the character")
        self._at = close + 1
        low = int(least)
        high = low if not comma else (int(most) if most else None)
        if max(low, high or 0) > _REPEAT_MAX or (high is not None and high < low):
            raise self._wrong("counts out of range")
        return low, high

    def _atom(self) -> Fragment:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._automaton.character(self._class())
        if character == ".":
            return self._automaton.character(lambda _: True)
        if character == "\\":
            return self._automaton.character(self._escape())
        if character in "^$":
            return self._automaton.anchor(character)
        if character in "*+?{":
            raise self._wrong(f"{character} where nothing can be repeated")
        return self._automaton.character(_equals(character))

    def _group(self) -> Fragment:
        if self._skip("?") and not self._skip(":"):
            raise self._wrong("a group of a kind that is not supported")
        inner = self._alternatives()
        if not self._skip(")"):
            raise self._wrong("a missing )")
        return inner

    def _class(self) -> CharacterTest:
        negated = self._skip("^")
        tests: list[CharacterTest] = []
        while not tests or self._peek() != "]":
            tests.append(self._class_item())
        self._at += 1
        return lambda c: any(test(c) for test in tests) != negated

    def _class_item(self) -> CharacterTest:
        character = self._take()
        if character == "[" and self._peek() == ":":
            raise self._wrong("a named class")
        if character == "\\" and self._peek() in _CLASSES:
            return self._escape()
        low = self._literal() if character == "\\" else character
        follows = self._pattern[self._at : self._at + 2]
        if not follows.startswith("-") or follows == "-]":
            return _equals(low)
        self._at += 1
        high = self._take()
        high = self._literal() if high == "\\" else high
        if high < low:
            raise self._wrong("a range that runs backwards")
        return lambda c: low <= c <= high

    def _escape(self) -> CharacterTest:
        known = _CLASSES.get(self._peek())
        if known is None:
            return _equals(self._literal())
        self._at += 1
        return known

    def _literal(self) -> str:
        """After a backslash: punctuation stands for itself; a letter or digit would mean something else."""
        character = self._take()
        if character.isalnum():
            raise self._wrong(f"\\{character}, which is not supported")
        return character

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _skip(self, character: str) -> bool:
        found = self._peek() == character
        self._at += found
        return found

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise self._wrong("an unexpected end")
        self._at += 1
        return character

    def _wrong(self, what: str) -> InvalidRegularExpression:
        return InvalidRegularExpression(f"At {self._at} of the pattern: {what}.")


def _equals(expected: str) -> CharacterTest:
    return lambda c: c == expected


def _not(test: CharacterTest) -> CharacterTest:
    return lambda c: not test(c)


def _is_digit(c: str) -> bool:
    return "0" <= c <= "9"


def _is_word(c: str) -> bool:
    return c == "_" or (c.isascii() and c.isalnum())


def _is_space(c: str) -> bool:
    return c in " \t\n\r\f\v"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


_CLASSES: Final[dict[str, CharacterTest]] = {
    "d": _is_digit,
    "D": _not(_is_digit),
    "w": _is_word,
    "W": _not(_is_word),
    "s": _is_space,
    "S": _not(_is_space),
}
