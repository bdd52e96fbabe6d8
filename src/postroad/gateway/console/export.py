"""A search's messages as a file: NDJSON as REST has them, or CSV for a table.

They are read page by page and sent as they come, up to `MESSAGES_MAX`; nothing is gathered here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from aiohttp import hdrs, web

from postroad.gateway.console import assets, payloads, reading
from postroad.gateway.console.pages.messages import asked_of
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import browse
from postroad.gateway.rest.browse import BrowsedMessage

MESSAGES_MAX: Final = 100_000
PAGE: Final = 1000
COLUMNS: Final = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
# A spreadsheet would take what begins so for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

Write = Callable[[Sequence[BrowsedMessage]], bytes]


async def export(visit: Visit) -> web.StreamResponse:
    """Raises Refused, PostroadError."""
    kind, topic = visit.path["kind"], visit.path["topic"]
    if kind not in WRITERS:
        raise reading.not_found(f"There are exports as {' and '.join(WRITERS)}.")
    if not visit.shows_payloads:
        raise reading.refused("Payloads are not shown in this console (console.payloads).")
    asked = {**asked_of(visit.query), "limit": PAGE}
    asked.pop("value_bytes")
    pages = _pages(visit, topic, asked)
    first = await anext(pages)  # what is wrong with the search is told before a file begins
    write, content_type = WRITERS[kind]
    response = web.StreamResponse(headers={**assets.HEADERS, hdrs.CACHE_CONTROL: "no-store"})
    response.content_type = content_type
    response.headers[hdrs.CONTENT_DISPOSITION] = f'attachment; filename="{topic}.{kind}"'
    await response.prepare(visit.request)
    await response.write(_csv_line(COLUMNS) if kind == "csv" else b"")
    await response.write(write(first))
    async for messages in pages:
        await response.write(write(messages))
    await response.write_eof()
    return response


async def _pages(
    visit: Visit, topic: str, asked: Mapping[str, Any]
) -> AsyncIterator[Sequence[BrowsedMessage]]:
    left = MESSAGES_MAX
    at = asked["from"]
    if at.startswith("-"):
        left = min(int(at[1:]), left)  # the newest of each partition, or so many in all
    while at is not None and left > 0:
        found = await visit.call(browse.browse, {**asked, "from": at, "limit": min(PAGE, left)}, topic=topic)
        left -= len(found.messages)
        at = found.next
        yield found.messages


def _ndjson(messages: Sequence[BrowsedMessage]) -> bytes:
    return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)


def _csv(messages: Sequence[BrowsedMessage]) -> bytes:
    return b"".join(
        _csv_line(
            [
                message.topic, message.partition, message.offset, message.timestamp_ms, _cell(message.key),
                _cell(message.value), msgspec.json.encode(message.headers).decode(),
            ]
        )
        for message in messages
    )  # fmt: skip


def _cell(content: Any) -> str:
    """Text, or the bytes as `base64:…`."""
    data = payloads.data_of(content)
    text = content if isinstance(content, str) else "" if data is None else f"base64:{content.base64}"
    return f"'{text}" if text.startswith(_FORMULA) else text


def _csv_line(cells: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode(errors="replace")


WRITERS: Final[Mapping[str, tuple[Write, str]]] = {
    "ndjson": (_ndjson, "application/x-ndjson"),
    "csv": (_csv, "text/csv"),
}
