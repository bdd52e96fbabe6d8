"""AlterPartitionReassignments (45), versions 0–1: partitions begin to move to other nodes (KIP-455).

Answered when the moves are noted; copying takes its time (ListPartitionReassignments shows it). Without
replicas a move is cancelled. Clients send it to the controller; any node takes it.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.moves import Named
from postroad.broker.parts import HasImage, HasMoves
from postroad.errors import ApiError, ClusterAuthorizationFailed, InvalidReplicationFactor
from postroad.security.resources import Operation
from postroad.wire.messages import alter_partition_reassignments as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.ALTER)

Outcomes = dict[Named, ApiError | None]


class Uses(HasImage, HasMoves, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _answer(node, call.access, codec.decode_request(call.body, call.version), call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(
        codec.AlterPartitionReassignmentsResponse(error_code=error.code, error_message=str(error)),
        call.version,
    )


async def _answer(
    node: Uses, access: Access, request: codec.AlterPartitionReassignmentsRequest, version: int
) -> bytes:
    wanted = {
        (topic.name, partition.partition_index): partition.replicas
        for topic in request.topics
        for partition in topic.partitions
    }
    outcomes: Outcomes = {}
    if not request.allow_replication_factor_change:
        outcomes = {named: _FACTOR for named, replicas in wanted.items() if _differs(node, named, replicas)}
    rest = {named: replicas for named, replicas in wanted.items() if named not in outcomes}
    response = codec.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    try:
        outcomes |= await node.moves.reassign(rest)
        access.changed("partitions moved", partitions={f"{topic}-{n}": to for (topic, n), to in rest.items()})
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
        return codec.encode_response(response, version)
    response.responses = [
        codec.ReassignableTopicResponse(
            topic.name,
            [
                _result(each.partition_index, outcomes[topic.name, each.partition_index])
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return codec.encode_response(response, version)


_FACTOR: Final = InvalidReplicationFactor("The request does not allow another number of replicas.")


def _differs(node: Uses, named: Named, replicas: list[int] | None) -> bool:
    topic = node.image.topics.get(named[0])
    if topic is None or replicas is None or not 0 <= named[1] < len(topic.partitions):
        return False
    return len(replicas) != len(topic.partitions[named[1]].target)


def _result(index: int, error: ApiError | None) -> codec.ReassignablePartitionResponse:
    if error is None:
        return codec.ReassignablePartitionResponse(index)
    return codec.ReassignablePartitionResponse(index, error.code, str(error))
