"""What a field finds in a message: a text, a number, true, false, null, a part of a document, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec


class Message(Protocol):
    """What a filter sees of a record."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


class _Absent:
    """Stands for what is not there. It is equal to itself alone."""


ABSENT: Final = _Absent()
_UNREAD: Final = _Absent()
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_DECODE: Final = msgspec.json.Decoder().decode


class Subject:
    """The message that is looked at. Its JSON is decoded once, when the first field asks for it."""

    __slots__ = ("_json", "message", "partition")

    def __init__(self) -> None:
        self.message: Message
        self.partition = 0
        self._json: Any = _UNREAD

    def begin(self, partition: int, message: Message) -> None:
        self.partition, self.message, self._json = partition, message, _UNREAD

    @property
    def json(self) -> Any:
        if self._json is _UNREAD:
            self._json = _read_json(self.message.value)
        return self._json


Get = Callable[[Subject], Any]
Step = str | int  # a name in an object, or an index in an array


class Field(NamedTuple):
    """`kind`: what can be found. "text": bytes that are shown as one; "json": any part of a document;
    "number" and "time": numbers that are always there."""

    name: str
    kind: str
    get: Get


def key() -> Field:
    return Field("key", "text", lambda subject: _text(subject.message.key))


def value() -> Field:
    return Field("value", "text", lambda subject: _text(subject.message.value))


def offset() -> Field:
    return Field("offset", "number", lambda subject: subject.message.offset)


def partition() -> Field:
    return Field("partition", "number", lambda subject: subject.partition)


def timestamp() -> Field:
    return Field("timestamp", "time", lambda subject: subject.message.timestamp)


PLAIN: Final[dict[str, Callable[[], Field]]] = {
    "key": key, "value": value, "offset": offset, "partition": partition, "timestamp": timestamp,
}  # fmt: skip


def header(name: str) -> Field:
    """The last one of this name, as in Kafka's `lastHeader`."""

    def get(subject: Subject) -> Any:
        for found, content in reversed(subject.message.headers):
            if found == name:
                return _text(content)
        return ABSENT

    return Field(f"header.{name}", "text", get)


def path(steps: Sequence[Step]) -> Field:
    def get(subject: Subject) -> Any:
        found = subject.json
        for step in steps:
            if isinstance(step, str):
                if not isinstance(found, dict):
                    return ABSENT
                found = found.get(step, ABSENT)
            elif not isinstance(found, list) or not -len(found) <= step < len(found):
                return ABSENT
            else:
                found = found[step]
        return found

    return Field("value…", "json", get)


def as_number(get: Get) -> Get:
    """The number that a text says; whatever is no such text stays as it is."""

    def number(subject: Subject) -> Any:
        found = get(subject)
        return _number(found) if isinstance(found, str) and _NUMBER.fullmatch(found) else found

    return number


def _number(text: str) -> int | float:
    return float(text) if "." in text or "e" in text or "E" in text else int(text)


def _text(data: bytes | None) -> str | None:
    """Bytes that are no UTF-8 have U+FFFD instead."""
    return None if data is None else data.decode(errors="replace")


def _read_json(data: bytes | None) -> Any:
    if data is None:
        return ABSENT
    try:
        return _DECODE(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ABSENT
