"""What a follower lets in: batches that its leader has sent, with the offsets and epochs that it gave them.

A Fetch answer ends anywhere, so its last batch may be cut. Everything else that is not a batch, does not
match its CRC or goes back is refused: the leader's next answer may be better, and a wrong batch could never
be told from a right one afterwards (L2, L12).
"""

from __future__ import annotations

from postroad.errors import CorruptMessage, MisplacedBatch
from postroad.wire.batch import CRC_START, HEADER, HEADER_BYTES, LENGTH_END, MAGIC, Fields, crc32c


def checked_copy(
    batches: memoryview, position: int, end_offset: int, last_epoch: int, leader_epoch: int
) -> Fields | None:
    """The header of the batch at the position, which may follow a log that ends so; None if the batch is cut.

    Raises CorruptMessage, MisplacedBatch.
    """
    available = len(batches) - position
    if available < HEADER_BYTES:
        return None
    fields = HEADER.unpack_from(batches, position)
    base, length, epoch, magic, crc, _, delta, _, _, _, _, _, count = fields
    size = length + LENGTH_END
    if magic != MAGIC or size < HEADER_BYTES or delta < 0 or count < 0:
        raise CorruptMessage(f"What the leader sent is not a batch, at byte {position} of its records.")
    if size > available:
        return None
    if crc32c(batches[position + CRC_START : position + size]) != crc:
        raise CorruptMessage(f"The CRC of the leader's batch at offset {base} does not hold.")
    if base < end_offset:
        raise MisplacedBatch(base, end_offset)
    if epoch != last_epoch and not last_epoch < epoch <= leader_epoch:
        raise CorruptMessage(
            f"The leader's batch at offset {base} is of epoch {epoch}; "
            f"the log is at {last_epoch}, and the leader at {leader_epoch}."
        )
    return fields
