"""The names of our own record headers: what a message asks for, what dead letters and mirrored messages tell
of their origin."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "postroad-"

DELIVER_AT: Final = PREFIX + "deliver-at"
DELAY_MS: Final = PREFIX + "delay-ms"
EXPIRES_AT: Final = PREFIX + "expires-at"
DEDUP_ID: Final = PREFIX + "dedup-id"
FOR: Final = PREFIX + "for"  # a subscription: the others pass the message over
ASKED_FOR: Final = (DELIVER_AT, DELAY_MS, EXPIRES_AT, DEDUP_ID, FOR)

IN_REPLY_TO: Final = PREFIX + "in-reply-to"  # of an endpoint's answer: the id of the message that it answers

REASON: Final = PREFIX + "reason"  # of a dead letter: why, in words

DEAD: Final = PREFIX + "dead-"
DEAD_TOPIC: Final = DEAD + "topic"
DEAD_PARTITION: Final = DEAD + "partition"
DEAD_OFFSET: Final = DEAD + "offset"
DEAD_SUBSCRIPTION: Final = DEAD + "subscription"
DEAD_REASON: Final = DEAD + "reason"
DEAD_DELIVERIES: Final = DEAD + "deliveries"
DEAD_FIRST_DELIVERY: Final = DEAD + "first-delivery"
DEAD_LAST_DELIVERY: Final = DEAD + "last-delivery"
DEAD_TIMESTAMP: Final = DEAD + "timestamp"
DEAD_AT: Final = DEAD + "at"
DEAD_UNREADABLE: Final = DEAD + "unreadable"

# What was asked for a message is kept by another name in its dead letter, where it holds for nobody.
SET_ASIDE: Final = {name: DEAD + name.removeprefix(PREFIX) for name in ASKED_FOR}


def tells_of_death(name: str) -> bool:
    """Whether the header is a dead letter's: it goes when the message dies again, or is sent back."""
    return name.startswith(DEAD) or name == REASON


# Each mirror that a message passes adds all five: the last ones are those of the nearest origin.
ORIGIN: Final = PREFIX + "origin-"
ORIGIN_CLUSTER: Final = ORIGIN + "cluster"
ORIGIN_TOPIC: Final = ORIGIN + "topic"
ORIGIN_PARTITION: Final = ORIGIN + "partition"
ORIGIN_OFFSET: Final = ORIGIN + "offset"
ORIGIN_TIMESTAMP: Final = ORIGIN + "timestamp"
