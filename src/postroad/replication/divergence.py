"""Where two logs part: by leader epochs, never by watermarks (KIP-101, KIP-279).

Each record belongs to the epoch of the leader that appended it, and an epoch has one leader, so two logs that
have the same epoch at an offset are equal up to there. A follower's fetch names its end and the epoch of its
last record. The leader looks where that epoch ends in its own log; if it does not know the epoch, or ends it
earlier, the logs have parted, and its answer is the largest epoch at or below the one asked for, with its
end. The follower cuts its log there, or where its own records of that epoch end if that is lower, and asks
again until they agree.

A fetch that is answered so is no promise of anything.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

NO_EPOCH: Final = -1  # of a log without records


class EpochEntries(Protocol):
    """The leader epochs of a log (`LeaderEpochs` is one)."""

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """(the largest epoch at or below the one asked for, where it ends), or (-1, -1) if that is newer than
        all."""
        ...

    def at(self, offset: int) -> int:
        """The epoch in which the offset was written; -1 if unknown."""
        ...


class EpochEnd(NamedTuple):
    epoch: int
    end_offset: int


def diverging(epochs: EpochEntries, log_end: int, last_epoch: int, offset: int) -> EpochEnd | None:
    """On the leader: where the follower's log parts from this one; None if it does not.

    `last_epoch` is the epoch of the follower's last record, or -1 if it has none; `offset` is its end.
    """
    if last_epoch == NO_EPOCH:
        return None
    epoch, end_offset = epochs.end_of(last_epoch, log_end)
    if epoch == NO_EPOCH:  # newer than all that is here: a store restored from a backup counts anew
        return EpochEnd(epochs.at(log_end - 1), log_end)
    if epoch == last_epoch and offset <= end_offset:
        return None
    return EpochEnd(epoch, end_offset)


def truncation(epochs: EpochEntries, log_end: int, leader: EpochEnd) -> int:
    """On the follower: the offset at which to cut the log, given where it parts from the leader's."""
    if leader.epoch == NO_EPOCH:  # the leader has no record at all
        return 0
    epoch, end_offset = epochs.end_of(leader.epoch, log_end)
    if epoch == NO_EPOCH:  # no record here is as new as that
        return min(leader.end_offset, log_end)
    return min(leader.end_offset, end_offset)
