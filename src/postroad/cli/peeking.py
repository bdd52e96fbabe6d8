"""Messages that a subscription is not done with, as rows of a table and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from postroad.cli import record_json
from postroad.cli.output import Cell
from postroad.client.browse import Peeked
from postroad.wire.records import Record

PREVIEW_CHARACTERS: Final = 40


def as_row(peeked: Peeked) -> tuple[Cell, ...]:
    state, record = peeked.state, peeked.record
    content = (None, None) if record is None else (record.key, record.value)
    return (
        *peeked.topic_partition,
        peeked.offset,
        state.state,
        _time(state.available_at_ms),
        state.member,
        _time(state.until_ms),
        state.deliveries,
        *map(_preview, content),
    )


def as_object(peeked: Peeked) -> dict[str, Any]:
    state = peeked.state
    record = peeked.record or Record(peeked.offset, -1, None, None)
    return record_json.as_object(*peeked.topic_partition, record) | {
        "readable": peeked.record is not None,
        "state": state.state,
        "available_at": state.available_at_ms or None,
        "held_by": state.member,
        "until": state.until_ms or None,
        "deliveries": state.deliveries,
    }


def _time(ms: int) -> str | None:
    return datetime.fromtimestamp(ms / 1000).isoformat(timespec="milliseconds") if ms else None


def _preview(data: bytes | None) -> str | None:
    if data is None:
        return None
    text = data[: 4 * PREVIEW_CHARACTERS].decode(errors="replace")
    shown = "".join(char if char.isprintable() else "·" for char in text)
    return shown if len(shown) <= PREVIEW_CHARACTERS else shown[: PREVIEW_CHARACTERS - 1] + "…"
