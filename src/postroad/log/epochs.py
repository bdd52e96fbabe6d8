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
"""

from __future__ import annotations

import struct
from typing import Final

from postroad.log.checked_file import read_checked, with_checksum
from postroad.log.disk import Disk

FILE_NAME: Final = "leader-epochs"
UNKNOWN: Final = -1

_MAGIC: Final = b"PRle"
_HEAD: Final = struct.Struct(">4sI")
_ENTRY: Final = struct.Struct(">iq")


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

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """(the largest epoch at or below the one asked for, where it ends), or (-1, -1)."""
        if epoch == UNKNOWN or epoch > self.last:
            return UNKNOWN, UNKNOWN
        if epoch == self.last:
            return epoch, log_end
        found = epoch
        for known, start_offset in self.entries:
            if known > epoch:
                return found, start_offset
            found = known
        return UNKNOWN, UNKNOWN

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
