"""What filters find, what they don't, and how they say that a line can't be read."""

from __future__ import annotations

import pytest

from postroad.filters import FilterError, compile_filter, times
from postroad.wire.records import Record

ORDER = Record(
    88,
    1_767_225_600_000,  # 2026-01-01
    b"order-17",
    b'{"total": 120.5, "paid": true, "note": null, "customer": {"name": "Ann", "two words": 1},'
    b' "items": [{"sku": "a-1", "n": 2}, {"sku": "b-2", "n": 3}], "code": "17"}',
    [("source", b"web"), ("source", b"shop"), ("attempt", b"3"), ("empty", None), ("x.y z", b"odd")],
)
TEXT = Record(5, -1, None, b"just some text, 100%", ())
TOMBSTONE = Record(6, 7, b"\xff\xfe", None, ())
NUMBER = Record(7, 7, b"17", b"42", ())


@pytest.mark.parametrize(
    "text",
    [
        'key ~ "order-*" and value.total > 100 and header.source = "shop"',
        'key = "order-17"',
        'key ~ "order-??"',
        'key !~ "order-?"',
        "value.total = 120.5",
        "value.total >= 120.5 and value.total <= 120.5 and value.total != 120",
        "value.paid = true and not value.paid = false and value.paid != 1",
        "value.note = null and exists value.note",
        "not exists value.none and value.none != 1 and not value.none = null",
        'value.customer.name in ("Bob", "Ann")',
        'value["customer"]["two words"] = 1',
        "value.items[0].n < value.items[1].n",
        'value.items[-1].sku = "b-2"',
        "not exists value.items[2] and not exists value.items[-3]",
        'value.code = "17" and value.code != 17',
        "header.attempt > 2 and header.attempt = 3 and header.attempt in (1, 3)",
        'header.attempt = "3" and header["x.y z"] ~ "o*"',
        "exists header.empty and header.empty = null and not exists header.none",
        'timestamp >= "2026-01-01" and timestamp < "2026-01-01T00:00:00.001Z"',
        "timestamp = 1767225600000 and offset = 88 and partition = 3",
        'value ~ "*\\"paid\\": true*"',
        "offset not in (1, 2) AND (offset < 0 OR NOT offset < 0)",
        'value.total < "z" or value.total > 1',
    ],
)
def test_a_message_is_found_by(text: str) -> None:
    assert compile_filter(text).matches(3, ORDER)


@pytest.mark.parametrize(
    "text",
    [
        'value.total < "z"',
        "value.customer = value.customer",
        'value.total ~ "120*"',
        'value.customer ~ "*"',
        "value.paid = 1",
        "value.total.deeper = 1",
        "value.items.n = 2",
        "value[0] = 1",
        'header.source = "web"',
        'key ~ "ORDER-*"',
        'key ~ "order"',
    ],
)
def test_a_message_is_not_found_by(text: str) -> None:
    assert not compile_filter(text).matches(3, ORDER)


def test_a_value_that_is_no_json_has_no_parts_but_is_a_text() -> None:
    assert compile_filter('value ~ "*some*" and not exists value.total').matches(0, TEXT)
    assert not compile_filter("value.total = 1").matches(0, TEXT)
    assert compile_filter("value = 42 and value > 41.9 and value < 1e3").matches(0, NUMBER)
    assert compile_filter('key = 17 and key = "17"').matches(0, NUMBER)


def test_tombstones_missing_keys_and_bytes_that_are_no_text() -> None:
    assert compile_filter("value = null and not exists value and not exists value.x").matches(0, TOMBSTONE)
    assert compile_filter('key ~ "\\ufffd*" and exists key').matches(0, TOMBSTONE)
    assert compile_filter("key = null and not exists key and timestamp = -1").matches(0, TEXT)
    deep = Record(0, 0, None, b"[" * 100_000, ())
    assert not compile_filter("exists value[0]").matches(0, deep)
    assert not compile_filter("value.a = value.b").matches(0, deep)


def test_the_document_of_the_last_message_is_not_that_of_the_next() -> None:
    filter_ = compile_filter("value.total > 100")
    assert [filter_.matches(0, each) for each in (ORDER, TEXT, ORDER, TOMBSTONE)] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "expected a field: key, value"),
        ("   ", 4, "found the end"),
        ("foo = 1", 1, "found 'foo'"),
        ("key", 4, "expected one of = != < <= > >= ~ !~ in, found the end"),
        ("key = ", 7, "expected a text in quotes, a number, true, false or null, or a field"),
        ("key = order", 7, "found 'order'"),
        ('key = "a', 7, 'has no closing "'),
        ('key = "\\q"', 8, "a backslash in a text"),
        ("key ~ 5", 7, "a pattern in quotes"),
        ("offset ~ '5'", 8, "offset is a number"),
        ("offset = '5'", 10, "expected a number, as offset is one"),
        ("timestamp > 'noon'", 13, "expected a time such as"),
        ("timestamp > '2026-02-30'", 13, "expected a time such as"),
        ("key = true", 7, 'write "true" in quotes'),
        ("(key = 'a'", 11, "a closing )"),
        ("key = 'a')", 10, "expected and, or, or the end, found ')'"),
        ("key = 'a' key = 'b'", 11, "expected and, or, or the end"),
        ("key in 'a'", 8, "a list such as (1, 2)"),
        ("key in ('a' 'b')", 13, "a comma or a closing )"),
        ("key in ()", 9, "found ')'"),
        ("key not = 'a'", 9, "expected in"),
        ("value. = 1", 8, "a name"),
        ("value.items[1.5] = 1", 13, "an index"),
        ("value.items[0 = 1", 15, "a closing ]"),
        ("header = 1", 1, "header needs a name"),
        ("header[1] = 1", 1, "header needs a name"),
        ("value.a = 1e999", 11, "too large"),
        ("value.a = " + "1" * 41, 11, "at most 40 characters"),
        ("key = 'a' ; drop", 11, "';' means nothing here"),
        ("key ~ '" + "?" * 65 + "'", 7, "at most 64"),
        ("(" * 51 + "key = 1" + ")" * 51, 51, "nests at most 50 deep"),
        ("not " * 51 + "key = 1", 201, "nests at most 50 deep"),
        (" and ".join(["offset=1"] * 101), 1301, "at most 100 comparisons"),
        ("offset in (" + ",".join("1" * 501) + ")", 1012, "at most 500 values"),
        ("value" + ".a" * 33 + " = 1", 70, "at most 32 steps"),
        ("key = '" + "a" * 5000 + "'", 4097, "at most 4096 characters"),
        ("__import__('os')", 1, "expected a field"),
    ],
)
def test_a_line_that_cant_be_read_says_where_and_why(text: str, column: int, says: str) -> None:
    with pytest.raises(FilterError) as raised:
        compile_filter(text)
    assert raised.value.column == column
    assert str(raised.value).startswith(f"Column {column}: ")
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01", 0),
        ("2026-03-01T08:00", 1_772_352_000_000),
        ("2026-03-01T08:00:30.5+01:00", 1_772_348_430_500),
        ("2026-03-01 08:00Z", 1_772_352_000_000),
        ("2024-02-29", 1_709_164_800_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0000-01-01", None),
        ("2025-02-29", None),
        ("2026-13-01", None),
        ("2026-01-01T24:00", None),
        ("2026-01-01Z", None),
        ("yesterday", None),
    ],
)
def test_times_are_read(text: str, time_ms: int | None) -> None:
    assert times.parse(text) == time_ms
