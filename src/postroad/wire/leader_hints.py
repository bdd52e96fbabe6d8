"""Who leads instead (KIP-951): a client that asks the wrong node goes on without asking for metadata.

Produce and Fetch carry the hints in tagged fields: the leader in a partition's, its address in the
response's. ShareFetch and ShareAcknowledge have plain fields for both, empty where there is nothing to tell.
Only answers with NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from postroad.wire.framing import write_uvarint

NO_TAGS: Final = b"\0"

_INT: Final = Struct(">i")
_LEADER: Final = Struct(">iiB")  # id, epoch, no tags
NO_LEADER: Final = _LEADER.pack(-1, -1, 0)


class CurrentLeader(NamedTuple):
    node_id: int
    epoch: int


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


def write_tags(*fields: tuple[int, bytes]) -> bytes:
    """A section of tagged fields, in the order of their tags."""
    parts = [write_uvarint(len(fields))]
    for tag, content in fields:
        parts += (write_uvarint(tag), write_uvarint(len(content)), content)
    return b"".join(parts)


def encode_leader(leader: CurrentLeader | None) -> bytes:
    """The leader's id and epoch; -1 both where none is named."""
    return NO_LEADER if leader is None else _LEADER.pack(leader.node_id, leader.epoch, 0)


def endpoint_tags(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged fields of a response: where the named leaders are, if there are any."""
    return write_tags((0, encode_endpoints(endpoints))) if endpoints else NO_TAGS


def encode_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """A compact array of nodes."""
    parts = [write_uvarint(len(endpoints) + 1)]
    for node_id, host, port, rack in endpoints:
        parts += (_INT.pack(node_id), _compact(host), _INT.pack(port), _compact(rack), NO_TAGS)
    return b"".join(parts)


def _compact(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    data = text.encode()
    return write_uvarint(len(data) + 1) + data
