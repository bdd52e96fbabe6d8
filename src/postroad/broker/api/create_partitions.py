"""CreatePartitions (37), versions 0–3: a topic gets more partitions (never fewer)."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasTopicChanges
from postroad.errors import ApiError
from postroad.security.resources import Operation
from postroad.wire.messages import create_partitions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.ALTER)


class Uses(HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _create(node, call.access, request, call.version)


async def _create(node: Uses, access: Access, request: codec.CreatePartitionsRequest, version: int) -> bytes:
    results = [await _create_one(node, access, topic, request.validate_only) for topic in request.topics]
    return codec.encode_response(codec.CreatePartitionsResponse(results=results), version)


async def _create_one(
    node: Uses, access: Access, topic: codec.CreatePartitionsTopic, validate_only: bool
) -> codec.CreatePartitionsTopicResult:
    assignments = None if topic.assignments is None else [given.broker_ids for given in topic.assignments]
    try:
        access.check_topic(topic.name)
        await node.topic_changes.add_partitions(topic.name, topic.count, assignments, validate_only)
    except ApiError as error:
        return codec.CreatePartitionsTopicResult(topic.name, error.code, str(error))
    if not validate_only:
        access.changed("partitions added", topic=topic.name, partitions=topic.count)
    return codec.CreatePartitionsTopicResult(topic.name)
