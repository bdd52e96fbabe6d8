"""A record as one line of JSON, the same way out (`consume --json`) and in (`publish --json`).

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000,
     "key": "k", "value": "text", "headers": [["name", "value"]]}

Bytes that are no UTF-8 are {"base64": "…"}; no key, a tombstone or a null header is null. On the way
in only `value` is needed, `headers` may be an object, and any other JSON value becomes its JSON text.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final, NamedTuple

import msgspec

from postroad.cli.numbers import INT32_MAX, INT64_MAX
from postroad.wire.records import Record

NO_TIMESTAMP: Final = -1


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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(content, dict) or "value" not in content:
        raise ValueError('is not an object with a "value"')
    try:
        return Message(
            value=_in(content["value"]),
            key=_in(content.get("key")),
            headers=_headers(content.get("headers")),
            partition=_number(content, "partition", INT32_MAX),
            timestamp=_timestamp(content),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"is not a message: {error}") from None


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


def _headers(given: Any) -> list[tuple[str, bytes | None]]:
    pairs = list(given.items()) if isinstance(given, dict) else given or []
    if not isinstance(pairs, list) or not all(map(_is_header, pairs)):
        raise ValueError('headers are [["name", "value"], …] or {"name": "value", …}')
    return [(name, _in(value)) for name, value in pairs]


def _is_header(pair: Any) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)


def _timestamp(content: dict[str, Any]) -> int | None:
    """`consume --json` writes -1 where a message has none."""
    return None if content.get("timestamp") == NO_TIMESTAMP else _number(content, "timestamp", INT64_MAX)


def _number(content: dict[str, Any], field: str, highest: int) -> int | None:
    value = content.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= highest:
        raise ValueError(f"{field} {value!r} is not a whole number from 0 to {highest}")
    return value
