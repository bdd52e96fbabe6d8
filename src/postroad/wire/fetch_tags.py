"""Tagged fields of a Fetch request, which only followers send."""

from __future__ import annotations

from struct import Struct
from typing import Final

from postroad.errors import ProtocolError
from postroad.wire.framing import read_uvarint

AHEAD_TAG: Final = 100  # of a partition, between nodes: where it is read, above the offset. Not Kafka's

_LONG: Final = Struct(">q")
_REPLICA: Final = Struct(">iq")  # id, epoch


def ahead(body: memoryview, at: int) -> tuple[int, int]:
    """The offset in the tag of a partition that is read ahead, -1 without it, and where its tags end."""
    offset = -1
    tags, at = read_uvarint(body, at)
    for _ in range(tags):
        tag, at = read_uvarint(body, at)
        size, at = read_uvarint(body, at)
        if tag == AHEAD_TAG:
            (offset,) = _LONG.unpack(body[at : at + size])
        at += size
        if at > len(body):
            raise ProtocolError("a tagged field is longer than the frame")
    return offset, at


def replica_state(body: memoryview, at: int) -> tuple[int, int]:
    """Tag 1 of the request: a replica says who it is (id, epoch). Consumers leave it out."""
    tags, at = read_uvarint(body, at)
    for _ in range(tags):
        tag, at = read_uvarint(body, at)
        size, at = read_uvarint(body, at)
        if tag == 1:
            replica_id, replica_epoch = _REPLICA.unpack_from(body, at)
            return replica_id, replica_epoch
        at += size
    return -1, -1
