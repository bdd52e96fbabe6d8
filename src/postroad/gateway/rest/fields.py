"""Types of fields that several endpoints share, with their bounds, and the rules for names in paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import Meta

from postroad.gateway import message_ids

TIME_MS_MAX: Final = 253_402_300_799_999  # the last millisecond of the year 9999
DAY_MS: Final = 86_400_000
YEAR_MS: Final = 366 * DAY_MS
LOCK_MS_MAX: Final = 43_200_000
NAME_MAX: Final = 249
USER_MAX: Final = 256

TOPIC_PATTERN: Final = r"^[a-zA-Z0-9._-]{1,249}$"

TopicName = Annotated[str, Meta(pattern=TOPIC_PATTERN, description="A topic's name.")]
SubscriptionName = Annotated[
    str,
    Meta(pattern=TOPIC_PATTERN, description="A subscription's name: what may also be a topic's name."),
]
PartitionNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
TimeMs = Annotated[int, Meta(ge=0, le=TIME_MS_MAX, description="Milliseconds since 1970, UTC.")]
DelayMs = Annotated[int, Meta(ge=0, le=YEAR_MS, description="Milliseconds.")]
ReleaseDelayMs = Annotated[int, Meta(ge=0, le=DAY_MS, description="Milliseconds; a day at most.")]
LockMs = Annotated[int, Meta(ge=0, le=LOCK_MS_MAX, description="Milliseconds; 12 hours at most.")]
PageSize = Annotated[int, Meta(ge=1, le=1000, description="How many at most.")]


@dataclass(frozen=True)
class PathRule:
    """What a parameter of a path must look like: its schema, and the same as a check."""

    description: str
    right: str
    pattern: str | None = None
    length_max: int | None = None

    def matches(self, value: str) -> bool:
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return False
        return self.length_max is None or 0 < len(value) <= self.length_max

    @property
    def schema(self) -> dict[str, Any]:
        if self.pattern is not None:
            return {"type": "string", "pattern": self.pattern}
        return {"type": "string", "minLength": 1, "maxLength": self.length_max}


# Subscriptions and groups that Kafka clients made may have any name: only new ones are held to the pattern.
PATH: Final = {
    "topic": PathRule("The topic's name.", "1 to 249 of a-z A-Z 0-9 . _ -", TOPIC_PATTERN),
    "subscription": PathRule("The subscription's name.", f"1 to {NAME_MAX} characters", length_max=NAME_MAX),
    "group": PathRule("The consumer group's name.", f"1 to {NAME_MAX} characters", length_max=NAME_MAX),
    "message": PathRule("The message's id.", "38 characters of URL-safe base64", message_ids.PATTERN),
    "node": PathRule("The node's id.", "a whole number", r"^(0|[1-9][0-9]{0,8})$"),
    "subject": PathRule("The subject's name.", "1 to 1000 characters", length_max=1000),
    "version": PathRule("The version's number, or latest.", "", r"^(latest|-1|[1-9][0-9]{0,9})$"),
    "id": PathRule("The schema's id.", "", r"^[1-9][0-9]{0,9}$"),
    "user": PathRule("The user's name.", f"1 to {USER_MAX} characters", length_max=USER_MAX),
    "key": PathRule("The access key's id.", "letters and digits", r"^[A-Za-z0-9]{1,128}$"),
    "redrive": PathRule("The redrive's id.", "16 hexadecimal digits", r"^[0-9a-f]{16}$"),
}
