"""What becomes of a message when its worker did not simply return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from postroad.workers.publishing import Outgoing
from postroad.workers.spans import Span, milliseconds

RETRY_MS_MAX: Final = 86_400_000  # a node delays nothing that was delivered for longer than a day
REASON_CHARACTERS_MAX: Final = 1000


class Retry(Exception):
    """Raise it in a worker: the message comes again, after the subscription's backoff or `after`.

    It counts as an attempt: after the last one the message is a dead letter, and `reason` is in it.
    """

    def __init__(self, reason: str = "", *, after: Span | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_ms = None if after is None else milliseconds(after, "after", longest_ms=RETRY_MS_MAX)


class Reject(Exception):
    """Raise it in a worker: the message can't be handled, now or later. It is a dead letter at once, and
    `reason` is in it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Release(NamedTuple):
    """The message comes again."""

    delay_ms: int | None = None  # None: after the subscription's backoff
    reason: str = ""  # for its dead letter, if that was the last attempt


class Rejection(NamedTuple):
    """The message becomes a dead letter now."""

    reason: str


class AcceptedWith(NamedTuple):
    """The message is accepted together with what it published, all or nothing."""

    outgoing: Sequence[Outgoing]


ACCEPTED: Final = None
Verdict = Release | Rejection | AcceptedWith | None
"""What is said of a message; None: it is accepted."""


def shortened(reason: str) -> str:
    """As much of it as a dead letter can hold."""
    reason = reason.encode("utf-8", "replace").decode()  # a lone surrogate can't be sent
    if len(reason) <= REASON_CHARACTERS_MAX:
        return reason
    return reason[: REASON_CHARACTERS_MAX - 1] + "…"


def explain(error: BaseException) -> str:
    """`ValueError: no such customer`"""
    text = str(error)
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__)
