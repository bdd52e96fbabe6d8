"""The last deliveries of a web hook, as the gateway that made them remembers them."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

KEPT: Final = 200
REASON_CHARACTERS_MAX: Final = 200


class Delivery(NamedTuple):
    """`status` 0: there was no answer. `reason` says what went wrong; empty: nothing did."""

    at_ms: int
    message_id: str
    topic: str
    partition: int
    offset: int
    attempt: int
    took_ms: float
    status: int
    is_delivered: bool
    reason: str


class Deliveries:
    """The newest come first."""

    def __init__(self) -> None:
        self._kept: deque[Delivery] = deque(maxlen=KEPT)

    def add(self, delivery: Delivery) -> None:
        self._kept.appendleft(delivery._replace(reason=delivery.reason[:REASON_CHARACTERS_MAX]))

    def newest(self, limit: int) -> list[Delivery]:
        return [delivery for delivery, _ in zip(self._kept, range(limit), strict=False)]
