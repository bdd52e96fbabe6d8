"""Small files that are written whole and end with a checksum of all before it (u32, CRC32C)."""

from __future__ import annotations

import struct
from typing import Final

from postroad.log.disk import Disk
from postroad.wire.batch import crc32c

_CRC: Final = struct.Struct(">I")


def with_checksum(body: bytes) -> bytes:
    return body + _CRC.pack(crc32c(body))


def read_checked(disk: Disk, path: str) -> bytes | None:
    """The body; None if the file is missing or its checksum does not hold."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        content = file.read(0, file.size())
    finally:
        file.close()
    body, crc = content[: -_CRC.size], content[-_CRC.size :]
    return body if len(crc) == _CRC.size and _CRC.unpack(crc)[0] == crc32c(body) else None
