"""The batches of one Fetch: checked, chosen, unpacked, and gathered so as to be decoded together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop
from struct import Struct
from typing import Final

from postroad.errors import CorruptMessage
from postroad.spark.fetched import Aborted
from postroad.wire import batch as batches
from postroad.wire.batch import CONTROL, HEADER_BYTES, TRANSACTIONAL, BatchHeader
from postroad.wire.compression import NONE, decompress
from postroad.wire.records import decode_records

# Of a chunk, unless one batch has more. To decode any chunk takes some hundred calls, so it should have many
# records; but not so many that their columns don't stay in the cache.
CHUNK_BYTES: Final = 8 * 1024 * 1024  # unpacked
CHUNK_RECORDS: Final = 16 * 1024
_ABORT: Final = 0
_CONTROL_KEY: Final = Struct(">hh")  # version, type


class Chunk:
    """Batches whose records lie in one buffer: batch n has those between `spans[n]`."""

    def __init__(self, data: memoryview, is_packed: bool) -> None:
        self.is_packed = is_packed
        self.headers: list[BatchHeader] = []
        self.spans: list[tuple[int, int]] = []
        self.size = 0
        self._records = 0
        self._data = data
        self._blocks: list[bytes] = []

    def add(self, at: int, header: BatchHeader) -> None:
        start, end = at + HEADER_BYTES, at + header.size
        if self.is_packed:
            block = decompress(header.compression, self._data[start:end])
            self._blocks.append(block)
            start, end = self.size, self.size + len(block)
        self.headers.append(header)
        self.spans.append((start, end))
        self.size += end - start
        self._records += header.count

    @property
    def is_full(self) -> bool:
        return self.size >= CHUNK_BYTES or self._records >= CHUNK_RECORDS

    @property
    def buffer(self) -> memoryview | bytes:
        """Batches that are not compressed stay where they are."""
        return b"".join(self._blocks) if self.is_packed else self._data


def chunks(data: memoryview, first: int, until: int, aborted: Sequence[Aborted]) -> Iterator[Chunk]:
    """The batches that may hold records from `first` up to `until`, without those that don't count.

    CorruptMessage if one is damaged, or if `data` doesn't end with a whole batch.
    """
    chunk: Chunk | None = None
    for at, header in _relevant(data, first, until, _Aborts(aborted)):
        is_packed = header.compression != NONE
        if chunk is None or chunk.is_packed != is_packed or chunk.is_full:
            if chunk is not None:
                yield chunk
            chunk = Chunk(data, is_packed)
        chunk.add(at, header)
    if chunk is not None:
        yield chunk


def _relevant(data: memoryview, first: int, until: int, aborts: _Aborts) -> Iterator[tuple[int, BatchHeader]]:
    whole, next_offset = 0, -1
    for at, header in batches.walk(data):
        whole = at + header.size
        if header.base_offset >= until:
            return
        batches.check(data, header, at)
        if header.base_offset < next_offset:
            raise CorruptMessage("A batch begins before the one in front of it ends.")
        next_offset = header.next_offset
        if aborts.leave_out(header, data[at:whole]) or header.attributes & CONTROL:
            continue
        if header.count and next_offset > first:
            yield at, header
    if whole != len(data):
        raise CorruptMessage("The bytes don't end with a whole batch.")


class _Aborts:
    """Which transactional batches don't count, told as the batches come by in their order."""

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self._coming = [(each.first_offset, each.producer_id) for each in aborted]
        heapify(self._coming)
        self._open: set[int] = set()  # producers within an aborted transaction

    def leave_out(self, header: BatchHeader, batch: memoryview) -> bool:
        if not header.attributes & TRANSACTIONAL or not (self._coming or self._open):
            return False
        while self._coming and self._coming[0][0] <= header.last_offset:
            self._open.add(heappop(self._coming)[1])
        if header.attributes & CONTROL and _is_abort(batch):
            self._open.discard(header.producer_id)
        return header.producer_id in self._open


def _is_abort(batch: memoryview) -> bool:
    """A marker's key says what it marks; one that can't be read is taken for a later kind."""
    for record in decode_records(batch):
        if record.key is not None and len(record.key) >= _CONTROL_KEY.size:
            return bool(_CONTROL_KEY.unpack_from(record.key)[1] == _ABORT)
    return False
