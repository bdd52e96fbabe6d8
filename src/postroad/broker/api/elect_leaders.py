"""ElectLeaders (43), versions 0–2: preferred leaders lead again (KIP-183), or whoever is left does (KIP-460).

Clients send it to the controller. Preferred leaders are elected by any node; for unclean elections another
node than the controller answers NOT_CONTROLLER. Without a list all partitions are meant, and those that need
no election are left out of the answer.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.elections import Outcomes
from postroad.broker.partitions import TopicPartition
from postroad.broker.parts import HasElections, HasImage
from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    ElectionNotNeeded,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from postroad.security.resources import Operation
from postroad.wire.messages import elect_leaders as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.ALTER)

PREFERRED, UNCLEAN = 0, 1

Named = dict[tuple[str, int], TopicPartition | None]
"""By topic name and index: the partition, None if there is no such topic."""


class Uses(HasElections, HasImage, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _answer(node, codec.decode_request(call.body, call.version), call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.ElectLeadersResponse(error_code=error.code), call.version)


async def _answer(node: Uses, request: codec.ElectLeadersRequest, version: int) -> bytes:
    try:
        response = await _elect(node, request)
    except ApiError as error:
        response = codec.ElectLeadersResponse(error_code=error.code)
    return codec.encode_response(response, version)


async def _elect(node: Uses, request: codec.ElectLeadersRequest) -> codec.ElectLeadersResponse:
    named = _named(node, request)
    wanted = [where for where in named.values() if where is not None]
    if request.election_type == PREFERRED:
        outcomes = await node.elections.elect_preferred(wanted)
    elif request.election_type == UNCLEAN:
        outcomes = await node.elections.elect_unclean(wanted)
    else:
        raise InvalidRequest(f"There is no election of type {request.election_type}.")
    return _response(named, outcomes, all_named=request.topic_partitions is not None)


def _named(node: Uses, request: codec.ElectLeadersRequest) -> Named:
    topics = node.image.topics
    if request.topic_partitions is None:
        return {
            (topic.name, index): (topic.id, index)
            for topic in topics.values()
            for index in range(len(topic.partitions))
        }
    return {
        (wanted.topic, index): (topics[wanted.topic].id, index) if wanted.topic in topics else None
        for wanted in request.topic_partitions
        for index in wanted.partitions
    }


def _response(named: Named, outcomes: Outcomes, *, all_named: bool) -> codec.ElectLeadersResponse:
    results: dict[str, codec.ReplicaElectionResult] = {}
    for (name, index), where in named.items():
        error = UnknownTopicOrPartition() if where is None else outcomes[where]
        if isinstance(error, ElectionNotNeeded) and not all_named:
            continue
        result = results.setdefault(name, codec.ReplicaElectionResult(name))
        result.partition_result.append(
            codec.PartitionResult(index)
            if error is None
            else codec.PartitionResult(index, error.code, str(error))
        )
    return codec.ElectLeadersResponse(replica_election_results=list(results.values()))
