"""What a message does to a row, in each of the forms that values have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from postroad.pipelines.changes import Reading, RowChange
from postroad.pipelines.tables.growing_columns import Bad

PLAIN = Reading("json")
BY_COLUMNS = Reading("json", ("id", "region"))
EVENTS = Reading("debezium")
EVENTS_BY_COLUMNS = Reading("debezium", ("id",))


def event(op: str, before: Any = None, after: Any = None, **more: Any) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, **more}).encode()


def test_message_makes_the_row_of_its_key_and_a_tombstone_takes_it_away() -> None:
    assert PLAIN.changes(b"k", b'{"a": 1}') == [RowChange(b"k", b'{"a": 1}')]
    assert PLAIN.changes(b"k", None) == [RowChange(b"k", None)]
    assert PLAIN.changes(b"", b"{}") == [RowChange(b"", b"{}")]


def test_key_of_columns_is_the_same_however_its_numbers_are_written() -> None:
    rows = (b'{"id": 1, "region": "eu"}', b'{"region": "eu", "x": null, "id": 1.0}')
    assert {BY_COLUMNS.changes(None, row)[0].key for row in rows} == {b'[1,"eu"]'}


@pytest.mark.parametrize(
    "key", [b'{"id": 1, "region": "eu"}', b'{"schema": {}, "payload": {"id": 1, "region": "eu"}}']
)
def test_tombstone_says_columns_in_its_key(key: bytes) -> None:
    assert BY_COLUMNS.changes(key, None) == [RowChange(b'[1,"eu"]', None)]


@pytest.mark.parametrize(
    ("reading", "key", "value", "why"),
    [
        (PLAIN, None, b"{}", "the message has no key"),
        (BY_COLUMNS, b"k", b"[1]", "JSON, but no object"),
        (BY_COLUMNS, b"k", b'{"id": 1}', "it has no region, which is part of the key"),
        (BY_COLUMNS, None, None, "has no key that says id, region"),
        (BY_COLUMNS, b"k", None, "not JSON"),
        (BY_COLUMNS, b'{"id": 1}', None, "its key has no region"),
        (EVENTS, b"k", b"no event", "not an event of Debezium"),
        (EVENTS, b"k", b'{"op": 1}', "not an event of Debezium"),
        (EVENTS, b"k", b"{}", "op None"),
        (EVENTS, b"k", event("x"), "op 'x'"),
        (EVENTS, b"k", event("t"), "a truncated table"),
        (EVENTS, b"k", event("u", {"a": 1}), "has no `after`"),
    ],
)
def test_what_is_no_change_says_why(
    reading: Reading, key: bytes | None, value: bytes | None, why: str
) -> None:
    with pytest.raises(Bad, match=why.replace("(", r"\(")):
        reading.changes(key, value)


def test_events_of_a_database_are_rows_with_the_time_of_their_change() -> None:
    made = event("c", None, {"id": 1}, ts_ms=9, source={"ts_ms": 7, "table": "orders"})
    assert EVENTS.changes(b"k", made) == [RowChange(b"k", b'{"id": 1}', 7000)]
    assert EVENTS.changes(b"k", event("r", None, {"id": 1}, ts_ms=9)) == [RowChange(b"k", b'{"id": 1}', 9000)]
    assert EVENTS.changes(b"k", event("d", {"id": 1})) == [RowChange(b"k", None)]
    assert EVENTS.changes(b"k", None) == [RowChange(b"k", None)]
    assert EVENTS.changes(b"k", event("m")) == []


def test_event_in_an_envelope_of_its_own_is_the_same() -> None:
    inner = json.loads(event("u", {"id": 1}, {"id": 1, "a": 2}))
    wrapped = json.dumps({"schema": {"type": "struct"}, "payload": inner}).encode()
    assert EVENTS.changes(b"k", wrapped) == [RowChange(b"k", b'{"id": 1, "a": 2}')]


def test_row_whose_key_changes_leaves_nothing_under_the_old_one() -> None:
    changed = EVENTS_BY_COLUMNS.changes(None, event("u", {"id": 1}, {"id": 2}))
    assert changed == [RowChange(b"[1]", None), RowChange(b"[2]", b'{"id": 2}')]
    assert len(EVENTS_BY_COLUMNS.changes(None, event("u", {"id": 2}, {"id": 2, "a": 1}))) == 1


def test_delete_says_columns_before_it_or_in_its_key() -> None:
    assert EVENTS_BY_COLUMNS.changes(None, event("d", {"id": 3})) == [RowChange(b"[3]", None)]
    assert EVENTS_BY_COLUMNS.changes(b'{"id": 3}', event("d")) == [RowChange(b"[3]", None)]
