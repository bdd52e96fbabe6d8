"""What a log answered when somebody asked for one of its messages."""

from __future__ import annotations

from typing import NamedTuple

from postroad.client.metadata import TopicPartition
from postroad.wire.records import Record


class Found(NamedTuple):
    part: TopicPartition
    wanted: Record
    by_offset: Record | None  # the first message that came when it was asked for by its offset
    by_time: int  # the offset of the first message of its time or later
