"""From text to a function, by recursive descent.

or      = and ("or" and)*
and     = not ("and" not)*
not     = "not" not | "(" or ")" | "exists" field | field comparison
comparison = ("=" | "!=" | "<" | "<=" | ">" | ">=") operand | ("~" | "!~") text
           | ["not"] "in" "(" literal ("," literal)* ")"
operand = literal | field
literal = text | number | "true" | "false" | "null"
field   = "key" | "offset" | "partition" | "timestamp" | "header" step | "value" step*
step    = "." name | "[" (text | whole number) "]"
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from postroad.filters import comparisons, fields, globs, times, tokens
from postroad.filters.comparisons import Test
from postroad.filters.fields import Field, Get, Step
from postroad.filters.tokens import END, NAME, NUMBER, SIGN, TEXT, FilterError, Token

DEPTH_MAX: Final = 50  # of parentheses and `not`
COMPARISONS_MAX: Final = 100  # bounds what one message costs
LIST_MAX: Final = 500
STEPS_MAX: Final = 32

_FIELDS: Final = "a field: key, value, value.NAME, header.NAME, offset, partition or timestamp"
_OPERATORS: Final = "one of = != < <= > >= ~ !~ in"
_LITERALS: Final = "a text in quotes, a number, true, false or null"
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_NEGATED: Final = {"!=", "!~"}


def parse(text: str) -> Test:
    """Raises FilterError."""
    return _Parser(tokens.read(text)).whole()


class _Literal(NamedTuple):
    value: Any
    token: Token


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0
        self._comparisons = 0

    def whole(self) -> Test:
        test = self._or()
        if self._next.kind != END:
            raise self._expected("and, or, or the end")
        return test

    # --- how comparisons are put together

    def _or(self) -> Test:
        tests = [self._and()]
        while self._takes_word("or"):
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else comparisons.either(tests)

    def _and(self) -> Test:
        tests = [self._not()]
        while self._takes_word("and"):
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else comparisons.both(tests)

    def _not(self) -> Test:
        token = self._next
        if self._takes_word("not"):
            return comparisons.negated(self._deeper(token, self._not))
        if self._takes("("):
            test = self._deeper(token, self._or)
            self._take(")", "and, or, or a closing )")
            return test
        return self._predicate()

    def _deeper(self, token: Token, parse_inner: Callable[[], Test]) -> Test:
        if self._depth == DEPTH_MAX:
            raise FilterError(token.column, f"a filter nests at most {DEPTH_MAX} deep")
        self._depth += 1
        test = parse_inner()
        self._depth -= 1
        return test

    # --- comparisons

    def _predicate(self) -> Test:
        token = self._next
        self._comparisons += 1
        if self._comparisons > COMPARISONS_MAX:
            raise FilterError(token.column, f"a filter has at most {COMPARISONS_MAX} comparisons")
        if self._takes_word("exists"):
            if self._takes("("):
                field = self._field(self._next)
                self._take(")", "a closing )")
            else:
                field = self._field(self._next)
            is_nullable = field.name in ("key", "value")
            return comparisons.is_given(field.get) if is_nullable else comparisons.exists(field.get)
        field = self._field(token)
        is_negated = self._takes_word("not")
        if is_negated and not self._is_word("in"):
            raise self._expected("in")
        if self._takes_word("in"):
            test = self._in(field)
        else:
            sign = self._next
            if sign.kind != SIGN or sign.text not in ("=", "==", "!=", "~", "!~", *comparisons.ORDERS):
                raise self._expected(_OPERATORS)
            self._at += 1
            is_negated = sign.text in _NEGATED
            test = self._compared(field, sign)
        return comparisons.negated(test) if is_negated else test

    def _compared(self, field: Field, sign: Token) -> Test:
        if sign.text in ("~", "!~"):
            return self._like(field, sign)
        left, right = self._sides(field)
        order = comparisons.ORDERS.get(sign.text)
        return (
            comparisons.equals(left, right) if order is None else comparisons.is_ordered(left, order, right)
        )

    def _sides(self, field: Field) -> tuple[Get, Get]:
        token = self._next
        literal = self._literal()
        if literal is None:
            return field.get, self._field(token, f"{_LITERALS}, or {_FIELDS}").get
        value = _fitting(field, literal)
        left = fields.as_number(field.get) if _wants_number(field, value) else field.get
        return left, lambda subject: value

    def _like(self, field: Field, sign: Token) -> Test:
        if field.kind in ("number", "time"):
            raise FilterError(sign.column, f"{sign.text} is for texts, and {field.name} is a number")
        pattern = self._next
        if pattern.kind != TEXT:
            raise self._expected('a pattern in quotes, such as "order-*"')
        self._at += 1
        try:
            return comparisons.is_like(field.get, globs.matcher(pattern.text))
        except globs.GlobError as error:
            raise FilterError(pattern.column, str(error)) from None

    def _in(self, field: Field) -> Test:
        self._take("(", "a list such as (1, 2)")
        values: list[Any] = []
        while True:
            token, literal = self._next, self._literal()
            if literal is None:
                raise self._expected(_LITERALS)
            if len(values) == LIST_MAX:
                raise FilterError(token.column, f"a list has at most {LIST_MAX} values")
            values.append(_fitting(field, literal))
            if not self._takes(","):
                break
        self._take(")", "a comma or a closing )")
        numbers = [value for value in values if _wants_number(field, value)]
        others = [value for value in values if not _wants_number(field, value)]
        if not numbers:
            return comparisons.is_in(field.get, others)
        as_numbers = comparisons.is_in(fields.as_number(field.get), numbers)
        return comparisons.either([comparisons.is_in(field.get, others), as_numbers])

    # --- what is compared

    def _literal(self) -> _Literal | None:
        """None if something else comes next."""
        token = self._next
        if token.kind == TEXT:
            self._at += 1
            return _Literal(token.text, token)
        if token.kind == NUMBER:
            self._at += 1
            return _Literal(_number(token), token)
        word = token.text.lower()
        if token.kind == NAME and word in _WORDS:
            self._at += 1
            return _Literal(_WORDS[word], token)
        return None

    def _field(self, token: Token, expected: str = _FIELDS) -> Field:
        if token.kind != NAME or token.text not in (*fields.PLAIN, "header"):
            raise self._expected(expected)
        self._at += 1
        if token.text == "header":
            step = self._step()
            if not isinstance(step, str):
                raise FilterError(token.column, 'header needs a name: header.source or header["source"]')
            return fields.header(step)
        steps = self._steps() if token.text == "value" else []
        return fields.path(steps) if steps else fields.PLAIN[token.text]()

    def _steps(self) -> list[Step]:
        steps: list[Step] = []
        while True:
            token, step = self._next, self._step()
            if step is None:
                return steps
            if len(steps) == STEPS_MAX:
                raise FilterError(token.column, f"a path has at most {STEPS_MAX} steps")
            steps.append(step)

    def _step(self) -> Step | None:
        if self._takes("."):
            token = self._next
            if token.kind != NAME:
                raise self._expected('a name; others than letters, digits, _ and - stand in ["…"]')
            self._at += 1
            return token.text
        if not self._takes("["):
            return None
        token = self._next
        step: Step
        if token.kind == TEXT:
            step = token.text
        elif token.kind == NUMBER and isinstance(number := _number(token), int):
            step = number
        else:
            raise self._expected("an index such as 0, or a name in quotes")
        self._at += 1
        self._take("]", "a closing ]")
        return step

    # --- tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is_word(self, word: str) -> bool:
        return self._next.kind == NAME and self._next.text.lower() == word

    def _takes_word(self, word: str) -> bool:
        found = self._is_word(word)
        self._at += found
        return found

    def _takes(self, sign: str) -> bool:
        found = self._next.kind == SIGN and self._next.text == sign
        self._at += found
        return found

    def _take(self, sign: str, expected: str) -> None:
        if not self._takes(sign):
            raise self._expected(expected)

    def _expected(self, what: str) -> FilterError:
        return FilterError(self._next.column, f"expected {what}, found {self._next.shown}")


def _number(token: Token) -> int | float:
    if len(token.text) > tokens.NUMBER_CHARACTERS_MAX:
        raise FilterError(token.column, f"a number has at most {tokens.NUMBER_CHARACTERS_MAX} characters")
    is_whole = token.text.removeprefix("-").isdigit()
    number = int(token.text) if is_whole else float(token.text)
    if not math.isfinite(number):
        raise FilterError(token.column, "the number is too large")
    return number


def _fitting(field: Field, literal: _Literal) -> Any:
    """The value to compare with. Raises FilterError where the field can never have one of its type."""
    value, token = literal
    if field.kind == "time" and isinstance(value, str):
        time_ms = times.parse(value)
        if time_ms is None:
            raise FilterError(
                token.column, 'expected a time such as "2026-03-01T08:00Z", or milliseconds since 1970'
            )
        return time_ms
    if field.kind in ("number", "time") and not comparisons.is_number(value):
        raise FilterError(token.column, f"expected a number, as {field.name} is one, found {token.shown}")
    if field.kind == "text" and isinstance(value, bool):
        raise FilterError(token.column, f'{field.name} is a text: write "{token.text}" in quotes')
    return value


def _wants_number(field: Field, value: Any) -> bool:
    return field.kind == "text" and comparisons.is_number(value)
