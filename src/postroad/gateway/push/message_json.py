"""A message as JSON, in WebSocket frames and in Server-Sent Events.

    {"topic": "orders", "partition": 0, "offset": 41, "timestamp": 1767225600000, "attempt": 1,
     "key": "k", "value": "text", "headers": [["trace", "a1"]], "id": 7, "receipt": "…"}

Bytes that are UTF-8 stand as text, others in base64 under `key_base64`, `value_base64`, or, in a header, as
`{"base64": …}`. What is not there, or null, is left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from postroad.client.share_message import ShareMessage

Header = tuple[str, str | dict[str, str] | None]


class Fields(NamedTuple):
    """The fields of `MessageJson` that are the message's own, in their order."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    attempt: int
    key: str | None
    value: str | None
    key_base64: str | None
    value_base64: str | None
    headers: Sequence[Header]


class MessageJson(Struct, omit_defaults=True):
    topic: str
    partition: int
    offset: int
    timestamp: int
    attempt: int = 0
    key: str | None = None
    value: str | None = None
    key_base64: str | None = None
    value_base64: str | None = None
    headers: Sequence[Header] = ()
    id: int = 0
    receipt: str = ""


def fields_of(message: ShareMessage) -> Fields:
    topic, partition, offset, timestamp, key, value, headers, attempt = message
    key_text, key_base64 = _text(key)
    value_text, value_base64 = _text(value)
    written = [_header(*header) for header in headers] if headers else ()
    return Fields(
        topic, partition, offset, timestamp, attempt, key_text, value_text, key_base64, value_base64, written
    )


def _text(data: bytes | None) -> tuple[str | None, str | None]:
    """As text, or else in base64."""
    if data is None:
        return None, None
    try:
        return str(data, "utf-8"), None
    except UnicodeDecodeError:
        return None, b64encode(data).decode()


def _header(name: str, value: bytes | None) -> Any:
    if not name.isascii():  # bytes that are no UTF-8 came as surrogates, which JSON can't have
        name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text, base64 = _text(value)
    return name, text if base64 is None else {"base64": base64}
