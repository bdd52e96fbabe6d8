"""D1: a flipped bit costs the batch that it is in, and nothing else; what it costs is said, not served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory, Position


def check(
    history: LogHistory, unreadable: Sequence[Position], flips: Sequence[int], lost_until: float
) -> Iterator[Violation]:
    """`flips`: of each partition, how many bits of its messages are wrong. Each message is a batch.

    What was sent by `lost_until` may be gone: a power cut took what was not on the disk.
    """
    damaged = set(unreadable)
    for partition, count in enumerate(flips):
        refused = [position for position in unreadable if position.partition == partition]
        if len(refused) > count:
            yield Violation(
                "D1",
                f"{history.topic}-{partition}: {len(refused)} offsets are answered with CORRUPT_MESSAGE, "
                f"the first of them {refused[0].offset}, and {count} bits were flipped in its segments",
            )
    for position, told in history.acknowledged.items():
        if told.at <= lost_until or position in damaged:
            continue
        found = history.final.get(position)
        if found != told.value:
            yield Violation(
                "D1",
                f"{history.topic}: {told.value[:24]!r} was acknowledged at {tuple(position)}; "
                f"there is {found if found is None else found[:24]!r}, and nobody says that it is damaged",
            )
            return
