"""What is asked about a field: functions from the message that is looked at to true or false."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any, Final

from postroad.filters.fields import ABSENT, Get, Subject

Test = Callable[[Subject], bool]

ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def equals(left: Get, right: Get) -> Test:
    return lambda subject: are_equal(left(subject), right(subject))


def is_in(left: Get, values: Collection[Any]) -> Test:
    def test(subject: Subject) -> bool:
        found = left(subject)
        return any(are_equal(found, value) for value in values)

    return test


def is_ordered(left: Get, compare: Callable[[Any, Any], bool], right: Get) -> Test:
    def test(subject: Subject) -> bool:
        one, other = left(subject), right(subject)
        both_texts = isinstance(one, str) and isinstance(other, str)
        return (both_texts or (is_number(one) and is_number(other))) and compare(one, other)

    return test


def is_like(left: Get, matches: Callable[[str], bool]) -> Test:
    def test(subject: Subject) -> bool:
        found = left(subject)
        return isinstance(found, str) and matches(found)

    return test


def exists(field: Get) -> Test:
    """Whether it is there; of a key, a value and a header that is more than null."""
    return lambda subject: field(subject) is not ABSENT


def is_given(field: Get) -> Test:
    return lambda subject: field(subject) is not None


def negated(test: Test) -> Test:
    return lambda subject: not test(subject)


def both(tests: Collection[Test]) -> Test:
    return lambda subject: all(test(subject) for test in tests)


def either(tests: Collection[Test]) -> Test:
    return lambda subject: any(test(subject) for test in tests)


def are_equal(one: Any, other: Any) -> bool:
    """Whether both are the same text, number, true, false or null. "1" is no 1, and 1 is no true; what is not
    there, objects and arrays equal nothing."""
    if is_number(one) and is_number(other):
        return bool(one == other)
    return type(one) is type(other) and isinstance(one, str | bool | None) and one == other


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
