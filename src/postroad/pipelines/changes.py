"""Messages as changes of rows: which row each is about, and what it is afterwards.

    json       the value is the row, as a JSON object; a tombstone takes it away
    debezium   the value is Debezium's envelope, as it is or below `payload`: op c, u and r: `after` is
               the row, d takes it away as a tombstone does, m is about no row; t (truncate) is an error
    bytes      the value is the row's one column; a tombstone takes it away

A row is known by its message's key, or by columns: then a message that takes a row away says them in
`before`, or in a key that is a JSON object (as Debezium's are, with or without `schema`). In canonical form
a key is the message's, or the columns' cells as a JSON list in which a number is an integer if it can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import msgspec

from postroad.pipelines.tables.growing_columns import Bad
from postroad.pipelines.tables.json_columns import json_object, typed

Form = Literal["json", "debezium", "bytes"]
FORMS: Final = ("json", "debezium", "bytes")

_NULL: Final = msgspec.Raw(b"null")


class RowChange(NamedTuple):
    """`value` is what the row is made of, None if it is gone; `time_us`: None is the message's."""

    key: bytes
    value: bytes | None
    time_us: int | None = None


class _Source(msgspec.Struct):
    ts_ms: int | None = None


class _Event(msgspec.Struct):
    """Debezium's envelope; what is not named here doesn't matter."""

    op: str | None = None
    before: msgspec.Raw = _NULL
    after: msgspec.Raw = _NULL
    source: _Source | None = None
    ts_ms: int | None = None
    payload: msgspec.Raw = _NULL

    @property
    def time_us(self) -> int | None:
        """The time of the change in its database, or else when it was seen."""
        found = self.source.ts_ms if self.source is not None else None
        found = self.ts_ms if found is None else found
        return None if found is None else found * 1000


_event = msgspec.json.Decoder(_Event).decode


@dataclass(frozen=True)
class Reading:
    """How messages are read. `columns` make the key; without any it is the message's."""

    form: Form
    columns: tuple[str, ...] = ()

    def changes(self, key: bytes | None, value: bytes | None) -> Sequence[RowChange]:
        """Those of one message, in their order. Raises Bad."""
        if value is None:
            return [RowChange(self._key_of(key), None)]
        if self.form == "debezium":
            return self._event_changes(key, value)
        return [RowChange(self._key_of(key, value), value)]

    def _event_changes(self, key: bytes | None, value: bytes) -> Sequence[RowChange]:
        event = _decoded(value)
        before, after = _object(event.before), _object(event.after)
        if event.op == "m":
            return []
        if event.op == "d":
            return [RowChange(self._key_of(key, before), None, event.time_us)]
        if event.op not in ("c", "u", "r"):
            what = "a truncated table" if event.op == "t" else f"an event with op {event.op!r}"
            raise Bad(f"{what} can't be merged")
        if after is None:
            raise Bad(f"an event with op {event.op!r} has no `after`")
        row = RowChange(self._key_of(key, after), after, event.time_us)
        if self.columns and before is not None and (was := self._former(before)) not in (None, row.key):
            return [RowChange(was or b"", None, event.time_us), row]
        return [row]

    def _key_of(self, key: bytes | None, row: bytes | None = None) -> bytes:
        if not self.columns:
            if key is None:
                raise Bad("the message has no key")
            return key
        if row is not None:
            return self._canonical(json_object(row), "it")
        if key is None:
            raise Bad(f"what takes a row away has no key that says {', '.join(self.columns)}")
        fields = json_object(key)
        inner = fields.get("payload")
        is_wrapped = fields.keys() == {"schema", "payload"} and isinstance(inner, dict)
        return self._canonical(inner if is_wrapped and inner is not None else fields, "its key")

    def _former(self, before: bytes) -> bytes | None:
        """The key that a row had before; None if that is not told."""
        try:
            return self._canonical(json_object(before), "before")
        except Bad:
            return None

    def _canonical(self, fields: Mapping[str, Any], which: str) -> bytes:
        cells = []
        for name in self.columns:
            if fields.get(name) is None:
                raise Bad(f"{which} has no {name}, which is part of the key")
            cell = typed(name, fields[name])[1]
            cells.append(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
        return msgspec.json.encode(cells)


def _decoded(value: bytes) -> _Event:
    try:
        event = _event(value)
        wrapped = bytes(event.payload)
        return _event(wrapped) if event.op is None and wrapped != b"null" else event
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Bad(f"not an event of Debezium: {error}") from None
    except RecursionError:
        raise Bad("its JSON is nested too deeply") from None


def _object(raw: msgspec.Raw) -> bytes | None:
    found = bytes(raw)
    return None if found == b"null" else found
