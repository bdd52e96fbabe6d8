"""Which partition a record goes to, the same one that Java's and librdkafka's murmur2 choose.

With a key: murmur2 of it, so that one key keeps one partition (and its order) whichever client
writes. Without: one partition until its batch is full, then another ("sticky", KIP-480), which
makes few large batches instead of many small ones.
"""

from __future__ import annotations

from typing import Final

from postroad.client.runtime import Runtime

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Austin Appleby's 32-bit MurmurHash2 with Kafka's seed, unsigned."""
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        word ^= word >> 24
        value = (value * _M & _MASK) ^ (word * _M & _MASK)
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value ^= value >> 13
    value = value * _M & _MASK
    return value ^ value >> 15


def for_key(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartition:
    """The partition for records without a key, until `move` says that its batch is full."""

    def __init__(self, runtime: Runtime) -> None:
        self._current = -1
        self._random = runtime.random

    def choose(self, partitions: int) -> int:
        if not 0 <= self._current < partitions:
            self._current = self._random.randrange(partitions)
        return self._current

    def move(self, partitions: int) -> None:
        """Another one, if there is another one."""
        if partitions > 1:
            self._current = (self._current + self._random.randrange(1, partitions)) % partitions
