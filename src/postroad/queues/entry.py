"""What the log holds, as far as a queue must know: ranges of offsets and what their messages ask for."""

from __future__ import annotations

from typing import Final, NamedTuple

UNREADABLE: Final = -1  # instead of an expiry: what the message asks for can't be read


class QueueEntry(NamedTuple):
    """Messages `first` to `last` that ask for the same. Times are wall-clock ms; 0 means: not asked for.

    Most of a log is plain: one entry may then stand for any number of batches.
    """

    first: int
    last: int
    key: bytes | None = None  # only looked for where order is `key`
    tenant: bytes | None = None  # only looked for where the subscription is fair
    deliver_at_ms: int = 0
    expires_at_ms: int = 0  # or UNREADABLE
