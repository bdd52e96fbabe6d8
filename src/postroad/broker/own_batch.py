"""A batch that the node itself writes, on the way of any other: staged, written by the turn, committed."""

from __future__ import annotations

from collections.abc import Sequence

from postroad.broker.partition import Partition
from postroad.broker.replies import Reply
from postroad.broker.turn import Turn
from postroad.wire import batch as batches
from postroad.wire.records import Record, encode_batch


def append_own(
    partition: Partition, turn: Turn, records: Sequence[Record], now_ms: int, reply: Reply
) -> None:
    """Append the records as one batch; `reply` hears when it is committed, never before this returns.

    A topic's limits are for those who publish to it: what the node must keep may have any size. Raises
    ApiError if the partition does not take it; then nothing is heard.
    """
    batch = memoryview(encode_batch(records))
    _append(partition, turn, batch, batches.HEADER.unpack_from(batch), now_ms, reply)


def append_whole(partition: Partition, turn: Turn, batch: memoryview, now_ms: int, reply: Reply) -> None:
    """Append a batch that this node or another has made, as `append_own` does. Raises CorruptMessage, too."""
    _append(partition, turn, batch, batches.only_batch(batch), now_ms, reply)


def _append(
    partition: Partition, turn: Turn, batch: memoryview, header: batches.Fields, now_ms: int, reply: Reply
) -> None:
    base_offset, _, _ = partition.append(batch, header, now_ms, any_size=True)
    turn.when_written(_Pending(partition, base_offset + header[batches.LAST_OFFSET_DELTA] + 1, reply))


class _Pending:
    """A batch on its way to the disk."""

    __slots__ = ("_needed", "_partition", "_reply")

    def __init__(self, partition: Partition, needed: int, reply: Reply) -> None:
        self._partition = partition
        self._needed = needed
        self._reply = reply

    def written(self) -> None:
        if self._partition.write_error is not None:
            self._reply(self._partition.write_error)
        else:
            self._partition.when_committed(self._needed, self._reply)
