"""Leader epochs of a log: which leader wrote which offsets (KIP-101, KIP-279).

File `leader-epochs`, big endian, replaced as a whole:

    4s    magic "PRle"
    u32   count
    i32   epoch, i64 start offset     for each epoch, rising
    u32   CRC32C of all before it

Valid if magic, size and CRC hold. Crash: every batch carries its leader's epoch, so the file may
lag: what is above the recovery point is found again in the batches. It is replaced before the
checkpoint moves past an epoch's start. A lost file is rebuilt from the batches of the whole log.

E1 epochs and start offsets rise along the list.
E2 an epoch without a batch is not in the file, or starts at the log's end and is dropped when the log is
   opened: only a leader needs the epoch that it has begun (KIP-279), and after a restart it begins anew.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from postroad.log.checked_file import read_checked, with_checksum
from postroad.log.disk import Disk

FILE_NAME: Final = "leader-epochs"
UNKNOWN: Final = -1

_MAGIC: Final = b"PRle"
_HEAD: Final = struct.Struct(">4sI")
_ENTRY: Final = struct.Struct(">iq")


class EpochEnd(NamedTuple):
    """Where a leader's epoch ended; both are -1 if that is not known."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = list(entries or ())  # (epoch, start offset)
        self.last = self.entries[-1][0] if self.entries else UNKNOWN

    def start(self, epoch: int, offset: int) -> None:
        """The epoch's first batch goes to `offset`. A new epoch that wrote nothing is replaced."""
        assert epoch > self.last, f"leader epoch {epoch} after {self.last}"
        self.truncate(offset)
        self.entries.append((epoch, offset))
        self.last = epoch

    def begin(self, epoch: int, offset: int) -> None:
        """A leader of this epoch writes from `offset` on. An epoch that has fallen makes all others unknown.

        Either a damaged batch claimed a higher one, or leaders count anew from a backup of the coordination
        store, and what they wrote since that backup is as good as any.
        """
        if epoch < self.last:
            self.truncate(0)
        if epoch != self.last:
            self.start(epoch, offset)

    def end_of(self, epoch: int, log_end: int) -> EpochEnd:
        """The largest epoch at or below the one asked for, and where it ends; unknown above the last one.

        Where all that are known are higher, what was asked for ended where the first of them starts.
        """
        if epoch == self.last != UNKNOWN:
            return EpochEnd(epoch, log_end)
        found = epoch
        for known, start_offset in self.entries if epoch != UNKNOWN else ():
            if known > epoch:
                return EpochEnd(found, start_offset)
            found = known
        return EpochEnd(UNKNOWN, UNKNOWN)

    def at(self, offset: int) -> int:
        """The epoch in which the offset was (or will be) written; -1 if unknown."""
        return next((epoch for epoch, start in reversed(self.entries) if start <= offset), -1)

    def truncate(self, offset: int) -> None:
        """Nothing at or above the offset is in the log any more."""
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()
        self.last = self.entries[-1][0] if self.entries else UNKNOWN

    def forget_before(self, offset: int) -> bool:
        """The log starts at `offset`: epochs that ended before it are dropped. Whether that changed any."""
        before = list(self.entries)
        while len(self.entries) > 1 and self.entries[1][1] <= offset:
            self.entries.pop(0)
        if self.entries and self.entries[0][1] < offset:
            self.entries[0] = (self.entries[0][0], offset)
        return self.entries != before


def encode_epochs(entries: list[tuple[int, int]]) -> bytes:
    content = _HEAD.pack(_MAGIC, len(entries)) + b"".join(_ENTRY.pack(*entry) for entry in entries)
    return with_checksum(content)


def read_epochs(disk: Disk, directory: str) -> list[tuple[int, int]] | None:
    """The entries; None if the file is missing or not valid."""
    body = read_checked(disk, f"{directory}/{FILE_NAME}")
    if body is None or len(body) < _HEAD.size:
        return None
    magic, count = _HEAD.unpack_from(body)
    if magic != _MAGIC or len(body) != _HEAD.size + count * _ENTRY.size:
        return None
    return list(_ENTRY.iter_unpack(body[_HEAD.size :]))
