"""Ids of messages and of move tasks: UUIDs, as with Amazon.

A message's id is made from where the message is: nobody has to keep it, and it stays as long as the message.
The other dialects name partition and offset (`gateway/message_ids.py`), which does not fit into a UUID.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

_PLACE: Final = Struct(">16siq")


def of_message(topic_id: bytes, partition: int, offset: int) -> str:
    return _uuid(_PLACE.pack(topic_id, partition, offset))


def of_task(task_id: str) -> str:
    return _uuid(task_id.encode())


def _uuid(data: bytes) -> str:
    """Written as a random UUID (version 4), for clients that look at the version."""
    digits = blake2b(data, digest_size=16).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
