"""What a report is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class ReportSettings:
    """Which topics, and where the page goes: a directory or a URL.

    `since` and `until` are times of messages; without them it is all there is. With `archive` messages
    are read from that table and not from the topics, which may have forgotten them. `time_header` names
    a header that says when a message was created; CloudEvents' is known. `dead_letters` are topics that hold
    letters of these; those of subscriptions, and others whose first message is such a letter, are found.
    """

    bootstrap: str
    topics: Sequence[str]
    to: str
    since: datetime | None = None
    until: datetime | None = None
    archive: str | None = None
    time_header: str | None = None
    dead_letters: Sequence[str] = ()  # topics that hold letters, besides those that are found

    @property
    def since_ms(self) -> int | None:
        return _ms(self.since)

    @property
    def until_ms(self) -> int | None:
        return _ms(self.until)


def _ms(moment: datetime | None) -> int | None:
    """A time without a zone is UTC's, as all times of a report are."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
