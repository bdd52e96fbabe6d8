"""ListPartitionReassignments (46), version 0: the partitions that are being moved now (KIP-455).

`adding_replicas` are those that the move brings, in sync or not, as Kafka has it. Any node answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage
from postroad.cluster import reassignment
from postroad.cluster.image import Image, Topic
from postroad.errors import ClusterAuthorizationFailed
from postroad.security.resources import Operation
from postroad.wire.messages import list_partition_reassignments as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)


class Uses(HasImage, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    found = [
        codec.OngoingTopicReassignment(topic.name, moving)
        for topic, indexes in _asked(node.image, request)
        if (moving := list(_moving(topic, indexes)))
    ]
    return codec.encode_response(codec.ListPartitionReassignmentsResponse(topics=found), call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(
        codec.ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error)),
        call.version,
    )


def _asked(
    image: Image, request: codec.ListPartitionReassignmentsRequest
) -> Iterator[tuple[Topic, list[int]]]:
    """The topics that are asked for, all unless told, each with its partitions; unknown ones are left out."""
    if request.topics is None:
        for topic in image.topics.values():
            yield topic, list(range(len(topic.partitions)))
        return
    for wanted in request.topics:
        found = image.topics.get(wanted.name)
        if found is not None:
            yield found, [index for index in wanted.partition_indexes if 0 <= index < len(found.partitions)]


def _moving(topic: Topic, indexes: list[int]) -> Iterator[codec.OngoingPartitionReassignment]:
    for index in indexes:
        state = topic.partitions[index]
        if reassignment.is_moving(state):
            yield codec.OngoingPartitionReassignment(
                index, list(state.replicas), list(reassignment.added(state)), list(state.removing)
            )
