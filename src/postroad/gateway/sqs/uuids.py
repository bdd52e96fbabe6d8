"""Ids of messages and of move tasks: UUIDs, as with Amazon.

A message's id is made from where the message is: nobody has to keep it, and it stays as long as the message.

    60 bits of a hash of topic id and partition · 62 bits of the offset

so two messages of a partition never have the same, and only the offset is written for each. Version and
variant are those of random UUIDs (4), for clients that look at them. The other dialects name partition and
offset (`gateway/message_ids.py`), which does not fit into a UUID.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Final

PARTITIONS_MAX: Final = 10_000  # whose part is kept; others are hashed anew

_PARTITION: Final = Struct(">16si")
_LOW_BITS: Final = 48  # of the offset: those in the UUID's last group
_VARIANT: Final = 0x8000
_HIGH_MASK: Final = 0x3FFF


def of_message(topic_id: bytes, partition: int, offset: int) -> str:
    if offset >> _LOW_BITS:
        high = _VARIANT | offset >> _LOW_BITS & _HIGH_MASK
        return f"{_beginning(topic_id, partition)[:-5]}{high:04x}-{offset & (1 << _LOW_BITS) - 1:012x}"
    return f"{_beginning(topic_id, partition)}{offset:012x}"


def of_task(task_id: str) -> str:
    digits = blake2b(task_id.encode(), digest_size=16).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


@lru_cache(PARTITIONS_MAX)
def _beginning(topic_id: bytes, partition: int) -> str:
    """All but the last group, for offsets that need no more."""
    digits = blake2b(_PARTITION.pack(topic_id, partition), digest_size=8).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-{_VARIANT:04x}-"
