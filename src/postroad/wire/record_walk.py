"""From record to record in a batch's plain block, without decoding them (layout: `wire.records`)."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.errors import CorruptMessage
from postroad.wire.records import read_varint

Step = tuple[int, int, int, int]
"""A record's offset minus the batch's, where its timestamp stands, where its key stands, where it ends."""


def walk_records(
    block: bytes | memoryview, position: int, end: int, count: int, last_delta: int
) -> Iterator[Step]:
    """Each of the `count` records that lie between `position` and `end` of a block.

    Raises CorruptMessage or IndexError unless they fill it exactly and their offsets rise, up to
    `last_delta` at most. What is in a record from its key on is not looked at. Numbers of one and two
    bytes are read in place: they are nearly all, and a call costs as much as the rest.
    """
    delta = -1
    for _ in range(count):
        if (number := block[position]) < 0x80:
            position += 1
        elif (byte := block[position + 1]) < 0x80:
            number, position = number & 0x7F | byte << 7, position + 2
        else:
            number, position = _zigzag(block, position)
        stop = position + (number >> 1)
        if number & 1 or stop > end:
            raise CorruptMessage("A record reaches past the end of its batch.")
        time_at = position = position + 1  # after the attributes
        while block[position] > 0x7F:
            position += 1
        position += 1
        if (number := block[position]) < 0x80:
            position += 1
        elif (byte := block[position + 1]) < 0x80:
            number, position = number & 0x7F | byte << 7, position + 2
        else:
            number, position = _zigzag(block, position)
        if number & 1 or not delta < number >> 1 <= last_delta or position > stop:
            raise CorruptMessage("A record's offset lies outside its batch, or does not rise.")
        delta = number >> 1
        yield delta, time_at, position, stop
        position = stop
    if position != end:
        raise CorruptMessage("Bytes are left over after the last record.")


def _zigzag(block: bytes | memoryview, position: int) -> tuple[int, int]:
    number, position = read_varint(block, position)
    return (number << 1 if number >= 0 else -1), position
