"""Nodes (10006), version 0: drain a node, cancel that, remove one, and what nodes the cluster knows.

Postroad's own: Kafka has nothing for it. Not advertised (see `wire.nodes`). Any node takes it.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasMoves
from postroad.cluster import reassignment
from postroad.cluster.image import Image
from postroad.errors import ApiError, ClusterAuthorizationFailed
from postroad.security.resources import Operation
from postroad.wire import nodes as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)
ADVERTISED: Final = False


class Uses(HasImage, HasMoves, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    order = codec.decode_request(call.body, call.version)
    if not isinstance(order, codec.DescribeNodes) and not call.access.may_cluster(Operation.ALTER):
        return refuse(node, call)
    return _answer(node, call.access, order, call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.NodesAnswer(error.code, str(error)), call.version)


async def _answer(node: Uses, access: Access, order: codec.AnyOrder, version: int) -> bytes:
    try:
        await _obey(node, order)
        if not isinstance(order, codec.DescribeNodes):
            access.changed("node changed", order=type(order).__name__, node=order.node)
        answer = codec.NodesAnswer(nodes=_standings(node.image))
    except ApiError as error:
        answer = codec.NodesAnswer(error.code, str(error))
    return codec.encode_response(answer, version)


async def _obey(node: Uses, order: codec.AnyOrder) -> None:
    match order:
        case codec.DrainNode(number):
            await node.moves.drain(number)
        case codec.CancelDrain(number):
            await node.moves.cancel_drain(number)
        case codec.RemoveNode(number):
            await node.moves.remove(number)
        case codec.DescribeNodes():
            pass


def _standings(image: Image) -> list[codec.NodeStanding]:
    states = [state for topic in image.topics.values() for state in topic.partitions]
    found = []
    for number in sorted({*image.directories, *image.nodes}):
        entry = image.nodes.get(number)
        is_drained = number in image.drains
        found.append(
            codec.NodeStanding(
                number,
                "" if entry is None else entry.state,
                "" if entry is None else entry.rack,
                is_drained,
                sum(number in state.replicas for state in states),
                sum(number in state.removing for state in states),
                len(reassignment.stuck(image, number)) if is_drained else 0,
            )
        )
    return found
