"""What a partition's log is told: one immutable value, replaced as a whole when a topic is altered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from postroad.errors import InvalidRecord, MessageTooLarge, RecordListTooLarge, RequestRefused

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
NO_LIMIT: Final = -1

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_FOREVER_MS: Final = (1 << 63) - 1


@dataclass(frozen=True)
class LogSettings:
    """The defaults are Kafka's, so that a topic behaves as its users expect."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    retention_ms: int = 7 * _DAY_MS  # NO_LIMIT: for ever
    retention_bytes: int = NO_LIMIT
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _FOREVER_MS
    max_message_bytes: int = 1_048_588
    index_interval_bytes: int = 4096
    timestamp_type: str = CREATE_TIME
    timestamp_before_max_ms: int = _FOREVER_MS
    timestamp_after_max_ms: int = _HOUR_MS
    producer_expiry_ms: int = _DAY_MS
    copied: bool = False  # there are other replicas: what a leader has compacted comes here with gaps

    def refusal(self, size: int) -> RequestRefused:
        """Why a batch of this size is not taken: one test on the hot path, the reasons here."""
        if size > self.max_message_bytes:
            return MessageTooLarge(f"The batch has {size} bytes; the topic takes {self.max_message_bytes}.")
        if size > self.segment_bytes:
            return RecordListTooLarge(f"The batch has {size} bytes; a segment has {self.segment_bytes}.")
        return InvalidRecord("The batch's last offset does not fit its number of records.")
