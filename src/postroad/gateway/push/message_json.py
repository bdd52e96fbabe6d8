"""A message as JSON, in WebSocket frames and in Server-Sent Events.

    {"topic": "orders", "partition": 0, "offset": 41, "timestamp": 1767225600000, "key": "k", "value": "text",
     "headers": [["trace", "a1"]], "attempt": 1, "id": 7, "receipt": "…"}

Keys, values and headers are written as everywhere in the gateway (`rest.content`): bytes that are UTF-8 as
text, others as {"base64": "…"}. Headers, attempt, id and receipt are left out where there are none.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from postroad.client.share_message import ShareMessage
from postroad.gateway.rest.content import Bytes, write_bytes, write_headers
from postroad.wire.records import Record

Headers = Sequence[tuple[str, Bytes]]


class RecordJson(Struct, omit_defaults=True):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Bytes
    value: Bytes
    headers: Headers = ()


class MessageJson(RecordJson, omit_defaults=True):
    attempt: int = 0
    id: int = 0
    receipt: str = ""


def of_record(topic: str, partition: int, record: Record) -> RecordJson:
    offset, timestamp, key, value, headers = record
    written = write_headers(headers) if headers else ()
    return RecordJson(topic, partition, offset, timestamp, write_bytes(key), write_bytes(value), written)


Fields = tuple[str, int, int, int, Bytes, Bytes, Headers, int]


def fields_of(message: ShareMessage) -> Fields:
    """The first fields of a `MessageJson`: all that the message itself knows."""
    topic, partition, offset, timestamp, key, value, headers, attempt = message
    written = write_headers(headers) if headers else ()
    return topic, partition, offset, timestamp, write_bytes(key), write_bytes(value), written, attempt
