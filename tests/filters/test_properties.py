"""Filters beside an evaluator that is as simple as the rules allow, and under lines that make no sense."""

from __future__ import annotations

import fnmatch
import json
import random
import re
import string
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from postroad.filters import Filter, FilterError, compile_filter, globs, times
from postroad.wire.records import Record

NOTHING = object()
NAMES = ["a", "b", "two words"]
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "1", "x", "xy", "-2"]))
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=6,
)
BYTES = st.one_of(st.none(), st.sampled_from([b"", b"1", b"x", b"xy", b"-2", b"\xff"]))
RECORDS = st.builds(
    Record,
    offset=st.integers(0, 4),
    timestamp=st.integers(0, 4),
    key=BYTES,
    value=st.one_of(BYTES, JSON.map(lambda found: json.dumps(found).encode())),
    headers=st.lists(st.tuples(st.sampled_from(NAMES), BYTES), max_size=3),
)
STEPS = st.lists(st.one_of(st.sampled_from(NAMES), st.integers(-2, 2)), min_size=1, max_size=3)
TEXT_FIELDS = st.one_of(
    st.just(("key",)), st.just(("value",)), st.sampled_from(NAMES).map(lambda n: ("header", n))
)
PATHS = STEPS.map(lambda steps: ("path", *steps))
NUMBER_FIELDS = st.sampled_from([("offset",), ("partition",), ("timestamp",)])
ORDERS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -2.0]))
TEXTS = st.sampled_from(["", "1", "x", "xy", "-2"])


def compared(field: Any, literals: Any) -> Any:
    return st.one_of(
        st.tuples(st.just("compare"), field, ORDERS, literals),
        st.tuples(st.just("in"), field, st.booleans(), st.lists(literals, min_size=1, max_size=3)),
        st.tuples(st.just("exists"), field),
    )


COMPARISONS = st.one_of(
    compared(TEXT_FIELDS, st.one_of(TEXTS, NUMBERS, st.none())),
    compared(PATHS, st.one_of(TEXTS, NUMBERS, st.none(), st.booleans())),
    compared(NUMBER_FIELDS, NUMBERS),
    st.tuples(st.just("like"), st.one_of(TEXT_FIELDS, PATHS), st.booleans(), st.text("x*?1", max_size=4)),
    st.tuples(st.just("fields"), st.one_of(PATHS, NUMBER_FIELDS), ORDERS, st.one_of(PATHS, TEXT_FIELDS)),
)
TREES = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("and"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("or"), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=5,
)


def written_field(field: tuple[Any, ...]) -> str:
    if field[0] not in ("path", "header"):
        return str(field[0])
    steps = [f"[{step}]" if isinstance(step, int) else f"[{json.dumps(step)}]" for step in field[1:]]
    return ("value" if field[0] == "path" else "header") + "".join(steps)


def written(tree: Any) -> str:
    kind = tree[0]
    if kind == "not":
        return f"not ({written(tree[1])})"
    if kind in ("and", "or"):
        # Parentheses only where they are needed, so that what binds more closely is seen too.
        parts = [
            f"({written(each)})" if kind == "and" and each[0] == "or" else written(each) for each in tree[1]
        ]
        return f" {kind} ".join(parts)
    field = written_field(tree[1])
    if kind == "exists":
        return f"exists {field}"
    if kind == "in":
        return f"{field} {'not ' if tree[2] else ''}in ({', '.join(map(json.dumps, tree[3]))})"
    if kind == "like":
        return f"{field} {'!~' if tree[2] else '~'} {json.dumps(tree[3])}"
    if kind == "fields":
        return f"{field} {tree[2]} {written_field(tree[3])}"
    return f"{field}{tree[2]}{json.dumps(tree[3])}"


def found(field: tuple[Any, ...], record: Record, partition: int) -> Any:
    text = {"key": record.key, "value": record.value}
    if field[0] in text:
        data = text[field[0]]
        return None if data is None else data.decode(errors="replace")
    if field[0] == "header":
        named = [value for name, value in record.headers if name == field[1]]
        return NOTHING if not named else None if named[-1] is None else named[-1].decode(errors="replace")
    if field[0] != "path":
        return {"offset": record.offset, "timestamp": record.timestamp, "partition": partition}[field[0]]
    try:
        at = json.loads(record.value or b"")
        for step in field[1:]:
            if isinstance(at, dict) != isinstance(step, str) or not isinstance(at, dict | list):
                return NOTHING
            at = at[step]
    except (ValueError, LookupError):
        return NOTHING
    return at


def kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {int: "number", float: "number", str: "text", type(None): "null"}.get(type(value), "other")


def holds(one: Any, sign: str, other: Any) -> bool:
    if sign == "!=":
        return not holds(one, "=", other)
    if kind_of(one) != kind_of(other) or kind_of(one) == "other":
        return False
    if sign == "=":
        return bool(one == other)
    if kind_of(one) not in ("number", "text"):
        return False
    return bool({"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[sign])


def coerced(field: tuple[Any, ...], value: Any, literal: Any) -> Any:
    is_raw = field[0] in ("key", "value", "header")
    if is_raw and kind_of(literal) == "number" and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    return value


def naive(tree: Any, record: Record, partition: int) -> bool:
    kind = tree[0]
    if kind == "not":
        return not naive(tree[1], record, partition)
    if kind == "and":
        return all(naive(each, record, partition) for each in tree[1])
    if kind == "or":
        return any(naive(each, record, partition) for each in tree[1])
    value = found(tree[1], record, partition)
    if kind == "exists":
        return value is not NOTHING and not (tree[1][0] in ("key", "value") and value is None)
    if kind == "in":
        return any(holds(coerced(tree[1], value, each), "=", each) for each in tree[3]) != tree[2]
    if kind == "like":
        return (isinstance(value, str) and fnmatch.fnmatchcase(value, tree[3])) != tree[2]
    if kind == "fields":
        return holds(value, tree[2], found(tree[3], record, partition))
    return holds(coerced(tree[1], value, tree[3]), tree[2], tree[3])


@settings(max_examples=600)
@given(TREES, RECORDS, st.integers(0, 3))
@example(("in", ("key",), False, [1, "x"]), Record(0, 0, b"1", None), 0)
def test_filters_decide_as_a_naive_evaluator_does(tree: Any, record: Record, partition: int) -> None:
    text = written(tree)
    assert compile_filter(text).matches(partition, record) == naive(tree, record, partition), text


@settings(max_examples=500)
@given(st.text("ab*?", max_size=8), st.text("ab", max_size=12))
@example("*aab*b", "aaabab")
def test_patterns_match_as_fnmatch_does(pattern: str, text: str) -> None:
    assert globs.matcher(pattern)(text) == fnmatch.fnmatchcase(text, pattern)


def test_characters_with_a_meaning_can_be_meant_themselves() -> None:
    assert globs.matcher(r"100\*\?\\")("100*?" + "\\")
    assert not globs.matcher(r"a\*")("ab")
    assert globs.matcher("*")("")
    assert globs.matcher("**?**")("\n")
    assert not globs.matcher("?")("")


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-14 * 60, 14 * 60))
def test_times_are_those_of_the_calendar(at: datetime, zone_minutes: int) -> None:
    aware = at.replace(tzinfo=UTC) - timedelta(minutes=zone_minutes)
    sign, minutes = "-" if zone_minutes < 0 else "+", abs(zone_minutes)
    text = f"{at.isoformat()}{sign}{minutes // 60:02}:{minutes % 60:02}"
    since_1970 = aware - datetime(1970, 1, 1, tzinfo=UTC)
    assert times.parse(text) == since_1970 // timedelta(milliseconds=1)


WORDS = [
    *(
        "key",
        "value",
        "header",
        "offset",
        "timestamp",
        "and",
        "or",
        "not",
        "in",
        "exists",
        "true",
        "null",
        "(",
        ")",
    ),
    *(
        "[",
        "]",
        ".",
        ",",
        "=",
        "!=",
        "~",
        "<",
        ">=",
        "'a'",
        '"*b?"',
        "1",
        "-2",
        "3.5",
        "name",
        "'2026-01-01'",
        "\\",
        "'",
    ),
]


@settings(max_examples=800)
@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["", " "]))
def test_words_in_any_order_are_a_filter_or_an_error_with_its_column(words: list[str], between: str) -> None:
    check(between.join(words))


@settings(max_examples=500)
@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_an_error_with_its_column(text: str) -> None:
    check(text)


def check(text: str) -> None:
    found = compiled_or_column(text)
    if isinstance(found, int):
        assert 1 <= found <= len(text) + 1
        return
    for record in (
        Record(0, 0, b"a", b'{"name": [1]}'),
        Record(0, -1, None, None),
        Record(1, 1, b"\xff", b"\x80"),
    ):
        assert found.matches(0, record) in (True, False)


def compiled_or_column(text: str) -> Filter | int:
    try:
        return compile_filter(text)
    except FilterError as error:
        return error.column


def test_bytes_of_any_kind_are_matched_without_an_error() -> None:
    chance = random.Random(17)
    filter_ = compile_filter(
        "value.a[0] = 1 or value ~ '*x*y*' or key > 5 or header.a = 2 or value.b < value.c"
    )
    pieces = [b"{", b"}", b"[", b"]", b'"', b":", b",", b"a", b"1e999", b"\\ud800", b"\xff", b"null", b"-"]
    for _ in range(5000):
        data = b"".join(chance.choices(pieces, k=chance.randrange(12)))
        assert filter_.matches(0, Record(0, 0, data, data, [("a", data)])) in (True, False)


def test_a_hostile_pattern_does_not_take_long() -> None:
    text = "a" * 200_000
    for pattern in ("*a" * 500 + "b", "*" + "?a" * 30 + "b*" * 5, "*" * 1000 + "b" + string.printable[:20]):
        assert not globs.matcher(pattern)(text)
