"""Single records cut out of a batch: what a consumer of a queue is sent where others hold the rest.

An excerpt is a valid batch of its own. Base offset, last offset delta, timestamps, producer and codec
are those of the whole; only count, length and CRC are new, so that records keep their offsets and it
looks like a batch that compaction thinned out, which every client can read. Records are copied as they
stand, neighbours as one piece; nothing is decoded.

An offset's record is found by its place in the batch, and places only by walking from record to
record. Consumer after consumer takes the next few records of one batch, so `Excerpts` keeps what it has
walked, and goes no further than it must.

E1  `_starts[n]` is where record n begins and `_starts[n + 1]` where it ends, for all that were walked.
E2  `_deltas[n]` is record n's offset minus the batch's, for all records. Where no offset is missing that
    is n: `_deltas` is None then, and lengths alone are walked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Final

from postroad.errors import CorruptMessage, MessageTooLarge, UnsupportedCompressionType
from postroad.wire.batch import CRC_START, HEADER_BYTES, LENGTH_END, crc32c, read_header
from postroad.wire.compression import NONE, Data, compress, decompress
from postroad.wire.record_walk import walk_records
from postroad.wire.records import read_varint

_FRONT: Final = Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
_COUNT: Final = Struct(">i")
_COUNT_AT: Final = HEADER_BYTES - _COUNT.size
_UNREADABLE: Final = (CorruptMessage, MessageTooLarge, UnsupportedCompressionType, IndexError)


class Excerpts:
    """Excerpts of one batch, taken one after the other, from any place. It keeps the bytes alive."""

    __slots__ = ("_batch", "_block", "_deltas", "_header", "_starts", "_whole")

    def __init__(self, batch: memoryview) -> None:
        self._batch = batch
        self._header = read_header(batch)
        self._starts = array("I", (0,))
        self._deltas: array[int] | None = None
        self._block: bytes | memoryview = b""
        self._whole = False  # it can't be cut
        try:
            self._open()
        except _UNREADABLE:
            self._whole = True

    def take(self, ranges: Sequence[tuple[int, int]]) -> bytes:
        """A batch with the records whose offsets lie in `ranges` (first and last, ascending, apart).

        All of the batch as it is where they hold all of its records, or where these can't be read: what
        is wrong with them is the consumer's to find out, who reads nothing that it did not acquire.
        """
        if not self._whole:
            try:
                count, pieces = self._cut(ranges)
                if count < self._header.count:
                    return self._pack(count, pieces)
            except _UNREADABLE:
                self._whole = True
        return bytes(self._batch)

    def _open(self) -> None:
        header = self._header
        block = self._batch[HEADER_BYTES:]
        self._block = decompress(header.compression, block) if header.compression else block
        if header.count != header.last_offset_delta + 1:
            self._walk_all()

    def _cut(self, ranges: Sequence[tuple[int, int]]) -> tuple[int, list[bytes | memoryview]]:
        """How many records lie in the ranges, and their bytes."""
        count, pieces = 0, []
        base, deltas, starts, block = self._header.base_offset, self._deltas, self._starts, self._block
        for first, last in ranges:
            if deltas is None:
                begin, end = max(first - base, 0), min(last - base + 1, self._header.count)
            else:
                begin, end = bisect_left(deltas, first - base), bisect_right(deltas, last - base)
            if begin < end:
                if end >= len(starts):
                    self._walk_to(end)
                pieces.append(block[starts[begin] : starts[end]])
                count += end - begin
        return count, pieces

    def _walk_all(self) -> None:
        header, block = self._header, self._block
        deltas = array("I")
        for delta, _, _, stop in walk_records(block, 0, len(block), header.count, header.last_offset_delta):
            deltas.append(delta)
            self._starts.append(stop)
        self._deltas = deltas

    def _walk_to(self, end: int) -> None:
        """Go on until the first `end` records are known, by their lengths alone."""
        block, starts, total = self._block, self._starts, len(self._block)
        position = starts[-1]
        for _ in range(end - len(starts) + 1):
            number = block[position]
            if number < 0x80:
                position += 1
            elif (byte := block[position + 1]) < 0x80:
                number, position = number & 0x7F | byte << 7, position + 2
            else:
                length, position = read_varint(block, position)
                number = length << 1 if length >= 0 else 1
            position += number >> 1
            if number & 1 or position > total:
                raise CorruptMessage("A record reaches past the end of its batch.")
            starts.append(position)

    def _pack(self, count: int, pieces: Sequence[Data]) -> bytes:
        header = self._header
        if header.compression != NONE:
            pieces = [compress(header.compression, b"".join(pieces))]
        checked = b"".join((self._batch[CRC_START:_COUNT_AT], _COUNT.pack(count)))
        size, crc = HEADER_BYTES, crc32c(checked)
        for piece in pieces:
            size += len(piece)
            crc = crc32c(piece, crc)
        front = _FRONT.pack(header.base_offset, size - LENGTH_END, header.leader_epoch, header.magic, crc)
        return b"".join((front, checked, *pieces))
