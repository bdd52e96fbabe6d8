"""A record as one line of JSON, the same way out (`consume --json`) and in (`publish --json`).

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000,
     "key": "k", "value": "text", "headers": [["name", "value"]]}

Bytes that are no UTF-8 are {"base64": "…"}; no key, a tombstone or a null header is null. On the way
in only `value` is needed, `headers` may be an object, and any other JSON value becomes its JSON text.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import msgspec

from postroad.wire.records import Record


class Message(NamedTuple):
    """What is to be published."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = []  # noqa: RUF012 (never changed)
    partition: int | None = None
    timestamp: int | None = None


def to_json(topic: str, partition: int, record: Record, **more: Any) -> bytes:
    """`more` are further fields, which `from_json` ignores."""
    return msgspec.json.encode(as_object(topic, partition, record) | more)


def as_object(topic: str, partition: int, record: Record) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _out(record.key),
        "value": _out(record.value),
        "headers": [(_name(name), _out(value)) for name, value in record.headers],
    }


def from_json(line: bytes) -> Message:
    """ValueError, with what is wrong, if it is no such line."""
    try:
        content = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(content, dict) or "value" not in content:
        raise ValueError('not an object with a "value"')
    headers = content.get("headers") or []
    named = headers.items() if isinstance(headers, dict) else headers
    try:
        return Message(
            value=_in(content["value"]),
            key=_in(content.get("key")),
            headers=[(str(name), _in(value)) for name, value in named],
            partition=_number(content.get("partition")),
            timestamp=_number(content.get("timestamp")),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"not a message: {error}") from None


def _out(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _name(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _in(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return b64decode(value["base64"], validate=True)
    return msgspec.json.encode(value)


def _number(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError(f"{value!r} is not a whole number")
