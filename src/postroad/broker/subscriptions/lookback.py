"""From where on a partition is read, so that it is known which messages behind an offset are duplicates.

Two windows: one in which the first of a duplicate may lie, and one before that, which tells whether it is a
first. Timestamps are the publishers', so they may say anything; how much is read has a bound all the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from postroad.broker.partition import Partition
from postroad.broker.subscriptions.duplicates import IDS_MAX
from postroad.wire.batch import HEADER_BYTES, LOG_APPEND_TIME, read_header

WINDOWS: Final = 2
MESSAGES_MAX: Final = WINDOWS * IDS_MAX  # more ids than that are not remembered anyway


class Lookback(NamedTuple):
    first: int
    since_ms: int | None  # messages before `first` are older than this; None: there are none


def lookback(partition: Partition, frontier: int, window_ms: int, now_ms: int) -> Lookback:
    """For the messages from `frontier` on, which must be there. Raises what reading the log raises."""
    log = partition.log
    since_ms = min(_time_at(partition, frontier), now_ms) - WINDOWS * window_ms
    first = min(_first_since(partition, since_ms), frontier)
    if first < frontier - MESSAGES_MAX:
        first = frontier - MESSAGES_MAX
        since_ms = _time_at(partition, first)
    return Lookback(first, since_ms) if first > log.start_offset else Lookback(log.start_offset, None)


def needed_from(partition: Partition, window_ms: int, now_ms: int) -> int:
    """The offset below which no message will be asked for to tell duplicates of new ones."""
    return _first_since(partition, now_ms - WINDOWS * window_ms)


def _first_since(partition: Partition, time_ms: int) -> int:
    found = partition.log.offset_for_time(time_ms)
    return partition.high_watermark if found is None else found.offset


def _time_at(partition: Partition, offset: int) -> int:
    """The timestamp of the batch that holds the offset, or of the next batch there is."""
    found = partition.read(offset, 1)
    assert found is not None, "nothing is there"
    header = read_header(found.file.read(found.position, HEADER_BYTES))
    return header.max_timestamp if header.attributes & LOG_APPEND_TIME else header.base_timestamp
