"""The end of a log as clients know it: what was acknowledged with acks=1 may still wait for its sync.

With flush `sync` the high watermark follows the disk, and acks=1 does not wait for it. A request that asks
for a log's end waits until it covers all that was acknowledged before, so that clients read their own writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.errors import ApiError


def answer_when_caught_up(
    call: Call, partitions: Iterable[Partition], respond: Callable[[], bytes]
) -> Result:
    """Answer with `respond()` once all that is written now is committed in these partitions.

    A sync that fails, or a partition that closes, ends the wait too; its high watermark stays what it was.
    """
    behind = [
        partition for partition in partitions if partition.high_watermark < partition.log.written_offset
    ]
    if not behind:
        return respond()
    parked, left = call.park(), len(behind)

    def committed(_: ApiError | None) -> None:
        nonlocal left
        left -= 1
        if left or parked.abandoned:
            return
        try:
            parked.complete(respond())
        except Exception:
            parked.hang_up("its request failed")
            raise

    for partition in behind:
        partition.when_committed(partition.log.written_offset, committed)
    return parked
