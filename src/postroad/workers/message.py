"""A message as a worker sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from postroad.wire.header_names import DEDUP_ID

if TYPE_CHECKING:
    from postroad.client.share_message import ShareMessage
    from postroad.workers.publishing import Headers, Outgoing
    from postroad.workers.spans import Span


class Message:
    """One delivery of a message: where it is, what came with it, how often it was tried."""

    __slots__ = ("_delivered", "outgoing", "subscription")

    def __init__(self, delivered: ShareMessage, subscription: str) -> None:
        self._delivered = delivered
        self.subscription = subscription
        self.outgoing: list[Outgoing] = []

    @property
    def topic(self) -> str:
        return self._delivered.topic

    @property
    def partition(self) -> int:
        return self._delivered.partition

    @property
    def offset(self) -> int:
        return self._delivered.offset

    @property
    def attempt(self) -> int:
        """The first delivery is 1."""
        return self._delivered.delivery_count

    @property
    def id(self) -> str:
        """A word for this message, the same at each attempt: what its publisher gave as `id`, else where the
        message is. For whoever must not do a thing twice."""
        return self.headers.get(DEDUP_ID) or f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def key(self) -> str | None:
        key = self._delivered.key
        return None if key is None else str(key, "utf-8", "surrogateescape")

    @property
    def payload(self) -> bytes | None:
        """The bytes, as they were published."""
        value = self._delivered.value
        return None if value is None else bytes(value)

    @property
    def headers(self) -> Mapping[str, str]:
        """By name; of several with one name the last. `raw_headers` has all of them."""
        return {
            name: str(value or b"", "utf-8", "surrogateescape") for name, value in self._delivered.headers
        }

    @property
    def raw_headers(self) -> Sequence[tuple[str, bytes | None]]:
        return self._delivered.headers

    @property
    def published_at(self) -> datetime:
        return datetime.fromtimestamp(self._delivered.timestamp / 1000, UTC)

    def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: str | bytes | None = None,
        delay: Span | None = None,
        at: datetime | None = None,
        expires: Span | None = None,
        id: str | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Publish when the worker has returned, and not if it raises: before the message is accepted, or, in
        a worker with `transaction=True`, together with that, all or nothing."""
        from postroad.workers.publishing import outgoing

        self.outgoing.append(
            outgoing(topic, value, key=key, delay=delay, at=at, expires=expires, id=id, headers=headers)
        )

    def __repr__(self) -> str:
        return f"<Message {self.topic}/{self.partition}/{self.offset} attempt {self.attempt}>"
