"""The end of a log as clients know it: what was acknowledged with acks=1 may still wait for its sync.

With flush `sync` the high watermark follows the disk, and acks=1 does not wait for it. A request that asks
for a log's end waits until it covers all that was acknowledged before, so that clients read their own writes.
With several replicas that may not come for long, while too few of them are in sync: then it is answered with
what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from postroad.broker.commit_waiters import NEVER
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.errors import ApiError

WAIT_MS_MAX: Final = 3000  # replicas in sync take less; clients' own time-outs are ten times as long


def answer_when_caught_up(
    call: Call, partitions: Iterable[Partition], respond: Callable[[], bytes], now_ms: int
) -> Result:
    """Answer with `respond()` once all that is written now is committed in these partitions.

    A sync that fails and a partition that closes end the wait, too, and so does `WAIT_MS_MAX` where there are
    other replicas; the high watermark is what it is then. `now_ms` is of the monotonic clock.
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
        alone = partition.leadership is None  # its own sync comes, or fails
        partition.when_committed(
            partition.log.written_offset, committed, NEVER if alone else now_ms + WAIT_MS_MAX
        )
    return parked
