"""Messages' keys, values and headers in JSON, the same as the command line's `--json`.

Bytes that are UTF-8 are a string, others {"base64": "…"}; no key, a tombstone or a null header is null. On
the way in any other JSON is a value too, and is stored as it was written.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from postroad.client.metadata import TopicPartition
from postroad.client.share_message import ShareMessage
from postroad.gateway import message_ids
from postroad.gateway.json_depth import is_too_deep
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.wire.records import Record

BASE64_PATTERN: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

Values = Annotated[
    Literal["text", "json", "base64"],
    Meta(description="json: values that are JSON are shown as JSON. base64: all values as bytes."),
]


class Base64(Struct, forbid_unknown_fields=True):
    """Bytes that are no text."""

    base64: Annotated[str, Meta(pattern=BASE64_PATTERN)]


Bytes = str | Base64 | None
HeaderPairs = list[tuple[str, Bytes]]
Value = Annotated[
    Any,
    Meta(
        description='The value: a string, bytes as {"base64": "…"}, null, or with `json` any JSON.',
    ),
]
NewValue = Annotated[
    Raw,
    Meta(
        description='A string is stored as text, {"base64": "…"} as bytes, null as a tombstone; any '
        "other JSON is stored as it is written.",
    ),
]

_any: Final = msgspec.json.Decoder()


class MessageContent(Struct, kw_only=True):
    """A message with where it is."""

    id: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Bytes
    value: Value
    headers: HeaderPairs


def content(
    topic_id: bytes, topic_partition: TopicPartition, record: Record | ShareMessage, values: Values
) -> Any:
    """The fields of a MessageContent."""
    return {
        "id": message_ids.write(topic_id, topic_partition.partition, record.offset),
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "key": write_bytes(record.key),
        "value": write_value(record.value, values),
        "headers": write_headers(record.headers),
    }


def read_value(raw: Raw) -> bytes | None:
    """The bytes to store."""
    text = bytes(raw).strip()
    if text.startswith(b'"') or text == b"null":
        return read_bytes(_any.decode(text))
    if text.startswith(b"{") and b'"base64"' in text:
        found = _any.decode(text)
        if found.keys() == {"base64"} and isinstance(found["base64"], str):
            return read_bytes(Base64(found["base64"]))
    return text


def read_bytes(data: Bytes) -> bytes | None:
    if isinstance(data, Base64):
        try:
            return base64.b64decode(data.base64, validate=True)
        except (ValueError, binascii.Error):
            raise Refused(problems.REFUSED, "A base64 value is not valid base64.") from None
    return None if data is None else data.encode()


def read_headers(headers: Mapping[str, Bytes] | HeaderPairs) -> list[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, read_bytes(value)) for name, value in pairs]


def write_bytes(data: bytes | None) -> Bytes:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Base64(base64.b64encode(data).decode())


def write_value(data: bytes | None, values: Values) -> Any:
    if data is None:
        return None
    if values == "base64":
        return Base64(base64.b64encode(data).decode())
    if values == "json" and _is_json(data):
        return Raw(data)
    return write_bytes(data)


def write_headers(headers: Sequence[tuple[str, bytes | None]]) -> HeaderPairs:
    """A header's name that is no UTF-8 came with surrogate escapes, which JSON can't hold."""
    return [
        (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), write_bytes(value))
        for name, value in headers
    ]


def _is_json(data: bytes) -> bool:
    """Looked into by a whole decoder: an answer with a broken piece in it would be broken itself."""
    try:
        if is_too_deep(data):
            return False
        data.decode()
        _any.decode(data)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return True
