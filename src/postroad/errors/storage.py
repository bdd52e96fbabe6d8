"""What the log and its disk say."""

from __future__ import annotations

from collections.abc import Sequence

from postroad.errors.base import CoordinationError, RequestRefused, TryAgain
from postroad.errors.requests import RequestTimedOut


class StorageFailed(TryAgain):
    code = 56
    summary = "The disk refused; see the node's log. Reads go on; produce again when it has recovered."


class StoreUnavailable(CoordinationError, RequestTimedOut):
    """The coordination store does not answer or has failed; messages don't need it and go on.

    Whether a commit under way happened is unknown: read again. REQUEST_TIMED_OUT says that to clients.
    """

    summary = "The coordination store can't be reached, so nothing can be changed now. Try again later."


class OffsetOutOfRange(RequestRefused):
    code = 1
    summary = "The offset is below the log's start or above its end."


class CorruptMessage(TryAgain):
    code = 2
    summary = "The batch's CRC, size or layout is wrong."


class MisplacedBatch(CorruptMessage):
    """A leader's batch begins below the end of the follower's log.

    An empty log that was reset to an offset within a batch begins at `base_offset` instead.
    """

    def __init__(self, base_offset: int, end_offset: int) -> None:
        super().__init__(f"The leader's batch begins at offset {base_offset}; the log ends at {end_offset}.")
        self.base_offset = base_offset


class MessageTooLarge(RequestRefused):
    code = 10
    summary = "The batch is larger than the topic's max.message.bytes."


class RecordListTooLarge(RequestRefused):
    code = 18
    summary = "The batch is larger than a segment may be."


class InvalidTimestamp(RequestRefused):
    code = 32
    summary = "The timestamp is outside the range that the topic accepts."


class UnsupportedForMessageFormat(RequestRefused):
    code = 43
    summary = "Only record batches of format 2 are accepted: use a client from 2017 or later."


class UnsupportedCompressionType(RequestRefused):
    code = 76
    summary = "The batch's compression is not one of none, gzip, snappy, lz4, zstd."


class InvalidRecord(RequestRefused):
    code = 87
    summary = "A record is not valid here (for a compacted topic: it has no key)."

    def __init__(self, *texts: str, records: Sequence[int] = ()) -> None:
        """`records`: which of its batch are not valid, if that is known; the others would have been taken."""
        super().__init__(*texts)
        self.records = records


class OffsetNotAvailable(TryAgain):
    code = 78
    summary = "A new leader does not know its high watermark yet."
