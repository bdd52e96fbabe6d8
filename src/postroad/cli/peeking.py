"""Messages that a subscription is not done with: their state from Peek, their content by plain fetches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from postroad.cli.output import Cell
from postroad.cli.record_json import as_object
from postroad.client import EARLIEST, Client, Consumer, TopicPartition, subscriptions
from postroad.wire.peek import FROM_START, PeekRange
from postroad.wire.records import Record

DONE: Final = "done"
READ_BYTES: Final = 256 * 1024
PATIENCE_S: Final = 5.0  # content that can't be read by then is left out
PREVIEW_CHARACTERS: Final = 40


class Peeked(NamedTuple):
    """`range` has the message among others in the same state; `record` is None if it could not be read."""

    place: TopicPartition
    offset: int
    range: PeekRange
    record: Record | None

    def as_row(self) -> tuple[Cell, ...]:
        state = self.range
        content = (None, None) if self.record is None else (self.record.key, self.record.value)
        return (
            *self.place,
            self.offset,
            state.state,
            _time(state.available_at_ms),
            state.member,
            _time(state.until_ms),
            state.deliveries,
            *map(_preview, content),
        )

    def as_object(self) -> dict[str, Any]:
        state = self.range
        record = self.record or Record(self.offset, -1, None, None)
        return as_object(*self.place, record) | {
            "readable": self.record is not None,
            "state": state.state,
            "available_at": state.available_at_ms or None,
            "held_by": state.member,
            "until": state.until_ms or None,
            "deliveries": state.deliveries,
        }


async def look(
    client: Client, group: str, places: Sequence[TopicPartition], first: int | None, limit: int
) -> list[Peeked]:
    """Up to `limit` messages, partition after partition, from an offset or from where each begins."""
    found: list[Peeked] = []
    for place in places:
        left = limit - len(found)
        if not left:
            break
        start = FROM_START if first is None else first
        answer = await subscriptions.peek(client, group, place, start, left)
        states = {
            offset: state
            for state in answer.ranges
            if state.state != DONE
            for offset in range(state.first, min(state.last, state.first + left) + 1)
        }
        wanted = sorted(states)[:left]
        records = await _read(client, place, wanted)
        found += [Peeked(place, offset, states[offset], records.get(offset)) for offset in wanted]
    return found


async def _read(client: Client, place: TopicPartition, wanted: Iterable[int]) -> dict[int, Record]:
    """Those of the records that are there, in as few fetches as their distances allow."""
    missing = set(wanted)
    records: dict[int, Record] = {}
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    async with Consumer(client, reset=EARLIEST, partition_bytes=READ_BYTES) as consumer:
        while missing and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            await consumer.assign({place: min(missing)})
            for _, came, _ in await consumer.poll(left_s):
                records |= {record.offset: record for record in came if record.offset in missing}
            missing = {offset for offset in missing if offset >= consumer.positions[place]}
    return records


def _time(ms: int) -> str | None:
    return datetime.fromtimestamp(ms / 1000).isoformat(timespec="milliseconds") if ms else None


def _preview(data: bytes | None) -> str | None:
    if data is None:
        return None
    text = data[: 4 * PREVIEW_CHARACTERS].decode(errors="replace")
    shown = "".join(char if char.isprintable() else "·" for char in text)
    return shown if len(shown) <= PREVIEW_CHARACTERS else shown[: PREVIEW_CHARACTERS - 1] + "…"
