"""What is to be published: a value with its wishes, as bytes and headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from postroad.wire import header_names as names
from postroad.workers.payloads import encode
from postroad.workers.spans import Span, milliseconds

Headers = Mapping[str, str | bytes] | Sequence[tuple[str, str | bytes | None]]


class Outgoing(NamedTuple):
    """A message that is about to be published. Middleware may publish another one in its place."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def with_header(self, name: str, value: str) -> Outgoing:
        """The same with this header, in place of any of that name."""
        others = tuple(each for each in self.headers if each[0] != name)
        return self._replace(headers=(*others, (name, value.encode())))


def outgoing(
    topic: str,
    value: Any,
    *,
    key: str | bytes | None = None,
    delay: Span | None = None,
    at: datetime | None = None,
    expires: Span | None = None,
    id: str | None = None,
    headers: Headers | None = None,
    now_ms: int | None = None,
) -> Outgoing:
    """ValueError and TypeError say which argument can't be used."""
    given = _plain(headers) if headers else ()
    asked: list[tuple[str, bytes | None]] = []
    if delay is not None:
        asked.append((names.DELAY_MS, b"%d" % milliseconds(delay, "delay")))
    if at is not None:
        asked.append((names.DELIVER_AT, b"%d" % _moment(at, "at")))
    if expires is not None:
        now = int(datetime.now(UTC).timestamp() * 1000) if now_ms is None else now_ms
        asked.append((names.EXPIRES_AT, b"%d" % (now + milliseconds(expires, "expires"))))
    if id is not None:
        asked.append((names.DEDUP_ID, id.encode()))
    return Outgoing(
        topic,
        encode(value),
        key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key,
        (*given, *asked),
    )


def _plain(headers: Headers) -> Iterable[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for name, value in pairs:
        if value is not None and not isinstance(value, str | bytes):
            raise TypeError(f"headers: {name!r} is {type(value).__name__}; it must be str or bytes")
        yield name, value.encode() if isinstance(value, str) else value


def _moment(moment: datetime, name: str) -> int:
    if moment.tzinfo is None:
        raise ValueError(f"{name}: {moment} has no time zone: write datetime(…, tzinfo=UTC)")
    return max(0, int(moment.timestamp() * 1000))
