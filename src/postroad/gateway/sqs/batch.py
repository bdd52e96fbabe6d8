"""Batches: up to ten entries in one request, each of which succeeds or fails on its own."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters, digits
from typing import Final, Protocol

from postroad.gateway.sqs.answers import FailedEntry
from postroad.gateway.sqs.errors import SqsError

ENTRIES_MAX: Final = 10
ID_CHARACTERS_MAX: Final = 80

_ID_CHARACTERS: Final = frozenset(ascii_letters + digits + "-_")


class BatchEntry(Protocol):
    id: str


def check(action: str, entries: Sequence[BatchEntry]) -> None:
    """Raises SqsError for what fails the whole batch."""
    if not entries:
        text = f"There should be at least one {action}RequestEntry in the request."
        raise SqsError("EmptyBatchRequest", text)
    if len(entries) > ENTRIES_MAX:
        text = f"Maximum number of entries per request are {ENTRIES_MAX}. You have sent {len(entries)}."
        raise SqsError("TooManyEntriesInBatchRequest", text)
    for entry in entries:
        if not 0 < len(entry.id) <= ID_CHARACTERS_MAX or not _ID_CHARACTERS.issuperset(entry.id):
            text = (
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
                "It can be at most 80 letters long."
            )
            raise SqsError("InvalidBatchEntryId", text)
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {entry.id} repeated.")
        seen.add(entry.id)


def failed(entry: BatchEntry, error: SqsError) -> FailedEntry:
    return FailedEntry(entry.id, error.status < 500, error.code, error.text)
