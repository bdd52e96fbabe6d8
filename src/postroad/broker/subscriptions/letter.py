"""A dead letter: the message, whole, with headers that tell of its death."""

from __future__ import annotations

from typing import NamedTuple

from postroad.queues.update import Dying, Reason
from postroad.wire import header_names as names
from postroad.wire.asked_times import unreadable_time
from postroad.wire.records import Record


class Origin(NamedTuple):
    """Where the message was, and who gave it up."""

    topic: str
    partition: int
    subscription: str


def letter_of(record: Record, dead: Dying, origin: Origin, now_ms: int, number: int) -> Record:
    """The copy, with its number in the batch that it is sent in."""
    told: dict[str, str | int] = {
        names.DEAD_TOPIC: origin.topic,
        names.DEAD_PARTITION: origin.partition,
        names.DEAD_OFFSET: record.offset,
        names.DEAD_SUBSCRIPTION: origin.subscription,
        names.DEAD_REASON: dead.reason,
        names.DEAD_DELIVERIES: dead.deliveries,
        names.DEAD_FIRST_DELIVERY: dead.first_ms,
        names.DEAD_LAST_DELIVERY: dead.last_ms,
        names.DEAD_TIMESTAMP: record.timestamp,
        names.DEAD_AT: now_ms,
    }
    # Headers of an earlier death are replaced. What was asked for the message is set aside: the letter
    # neither waits nor expires nor repeats another, or no subscription could ever hand it out.
    headers = [
        (names.SET_ASIDE.get(name, name), value)
        for name, value in record.headers
        if not names.tells_of_death(name) or name == names.DEAD_UNREADABLE
    ]
    headers += [(name, str(value).encode()) for name, value in told.items()]
    text = dead.text or (unreadable_time(record.headers) if dead.reason is Reason.INVALID else None)
    if text:
        headers.append((names.REASON, text.encode()))
    # Its own time is that of its death: retention counts from there, however old the message was.
    return Record(number, now_ms, record.key, record.value, headers)
