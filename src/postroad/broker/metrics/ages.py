"""When a message was written, found without opening its batch."""

from __future__ import annotations

from postroad.broker.partition import Partition
from postroad.errors import ApiError
from postroad.wire.batch import HEADER_BYTES, LOG_APPEND_TIME, read_header


def age_s(partition: Partition, offset: int, now_ms: int) -> float:
    """The age of the message at `offset`, by its batch's first timestamp; 0 if that can't be told."""
    try:
        found = partition.read(offset, 1)
        if found is None:
            return 0.0
        header = read_header(found.file.read(found.position, HEADER_BYTES))
    except (ApiError, OSError):
        return 0.0
    stamped = header.max_timestamp if header.attributes & LOG_APPEND_TIME else header.base_timestamp
    return max(now_ms - stamped, 0) / 1000 if stamped > 0 else 0.0
