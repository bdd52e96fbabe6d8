"""Nodes (10006), version 0: which nodes a cluster has, and what an operator asks of them.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`.

    request  := order (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.wire.own_codec import OwnCodec

KEY: Final = 10_006
NAME: Final = "Nodes"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0


class NodesOrder(msgspec.Struct, tag_field="type", frozen=True):
    """What an operator asks for. Each is answered with the nodes as they are then."""


class DescribeNodes(NodesOrder, tag="describe", frozen=True):
    """Nothing changes."""


class DrainNode(NodesOrder, tag="drain", frozen=True):
    """The node is to be emptied, be it alive or dead, and gets nothing new."""

    node: int


class CancelDrain(NodesOrder, tag="cancel", frozen=True):
    """The node may have partitions again; what has not left it yet stays."""

    node: int


class RemoveNode(NodesOrder, tag="remove", frozen=True):
    """The cluster forgets a node that is stopped and holds nothing."""

    node: int


AnyOrder = DescribeNodes | DrainNode | CancelDrain | RemoveNode


class NodeStanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node that the cluster knows, whether it runs or not."""

    id: int
    state: str = ""  # as its entry says; empty: it does not run
    rack: str = ""
    drained: bool = False
    replicas: int = 0  # that it holds, with those that are on their way to it
    leaves: int = 0  # of these, partitions that are moving away from it
    stuck: int = 0  # of these, partitions that no other node can take, or be copied from


class NodesAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    error_code: int = 0
    error_message: str | None = None
    nodes: list[NodeStanding] = []


_request: Final[msgspec.msgpack.Decoder[AnyOrder]] = msgspec.msgpack.Decoder(AnyOrder)
_codec: Final = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, _request, msgspec.msgpack.Decoder(NodesAnswer))

decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
