"""Events that a run of many seeds must reach: a check that is never put to the test proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SEEDS_MIN: Final = 200  # fewer need not reach everything

EVENTS: Final[tuple[str, ...]] = (
    "clean stop",
    "power cut",
    "power cut while it starts",
    "start refused",
    "queues: a crash after a state was written as a whole",
    "queues: a dead letter, attempts",
    "queues: a dead letter, expired",
    "queues: a dead letter, rejected",
    "queues: a delayed message came",
    "queues: a lock was left to end",
    "queues: a member fell silent",
    "queues: a message came again",
    "queues: a message waited for an earlier one of its key",
    "queues: a subscription was altered",
    "queues: an acknowledgement was refused",
    "queues: create was answered",
    "queues: nobody knows of an acknowledgement",
    "queues: purge was answered",
    "queues: seek was answered",
    "queues: what was acknowledged by all was deleted",
)


def missing(seen: Mapping[str, int]) -> list[str]:
    return [event for event in EVENTS if not seen.get(event)]
