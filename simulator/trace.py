"""Everything that happened, in order: as one hash, and as lines in a file where one is wanted.

Bytes are noted by their length and CRC (`checksum`), so a trace stays small and still tells two runs apart
by a single bit. Details must not depend on the Python process: no addresses, no order of sets.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Final
from zlib import crc32

_GATHERED_MAX: Final = 1000  # lines; one update of the hash for all of them costs a tenth


class Trace:
    def __init__(self, path: Path | None = None) -> None:
        self.count = 0
        self._hash = blake2b(digest_size=12)
        self._lines: list[str] = []
        self._file = None if path is None else path.open("w", encoding="utf-8")

    def note(self, at: float, who: str, what: str, detail: object = "") -> None:
        self.count += 1
        self._lines.append(f"{at:.9f} {who} {what} {detail}\n")
        if len(self._lines) >= _GATHERED_MAX:
            self._digest_lines()

    @property
    def digest(self) -> str:
        """The hash of all lines until now."""
        self._digest_lines()
        return self._hash.hexdigest()

    def close(self) -> None:
        self._digest_lines()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _digest_lines(self) -> None:
        text = "".join(self._lines)
        self._lines.clear()
        self._hash.update(text.encode("utf-8", "backslashreplace"))
        if self._file is not None:
            self._file.write(text)
            self._file.flush()


def checksum(data: bytes | bytearray | memoryview) -> str:
    """The bytes' length and CRC: what a trace says of them."""
    return f"{len(data)}:{crc32(data):08x}"
