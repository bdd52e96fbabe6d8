"""CreateTopics (19), versions 2–7. The answer comes when the topics can be used."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSettings, HasTopicChanges
from postroad.cluster import topic_config
from postroad.errors import ApiError, InvalidRequest, TopicAuthorizationFailed
from postroad.security.resources import Operation
from postroad.wire.messages import create_topics as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.CREATE)

AT_ONCE: Final = 16  # of one request: while logs of some are made, the store commits the next ones


class Uses(HasSettings, HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _create(node, call.access, request, call.version)


async def _create(node: Uses, access: Access, request: codec.CreateTopicsRequest, version: int) -> bytes:
    times = Counter(topic.name for topic in request.topics)
    results: list[codec.CreatableTopicResult] = []
    for first in range(0, len(request.topics), AT_ONCE):
        some = request.topics[first : first + AT_ONCE]
        results += await asyncio.gather(
            *(_create_one(node, access, topic, times[topic.name], request.validate_only) for topic in some)
        )
    return codec.encode_response(codec.CreateTopicsResponse(topics=results), version)


async def _create_one(
    node: Uses, access: Access, topic: codec.CreatableTopic, times: int, validate_only: bool
) -> codec.CreatableTopicResult:
    try:
        if not access.may_cluster(Operation.CREATE):
            access.check_topic(topic.name)
        if times > 1:
            raise InvalidRequest("The request names this topic more than once.")
        assignments = {given.partition_index: given.broker_ids for given in topic.assignments}
        created = await node.topic_changes.create(
            topic.name,
            partitions=topic.num_partitions,
            replicas=topic.replication_factor,
            assignments=assignments or None,
            config={given.name: given.value for given in topic.configs},
            validate_only=validate_only,
        )
    except ApiError as error:
        return codec.CreatableTopicResult(topic.name, error_code=error.code, error_message=str(error))
    if not validate_only:
        access.changed("topic created", topic=topic.name, partitions=len(created.partitions))
    if not access.may_topic(topic.name, Operation.DESCRIBE_CONFIGS):
        code = TopicAuthorizationFailed.code
        return codec.CreatableTopicResult(topic.name, created.id, topic_config_error_code=code)
    return codec.CreatableTopicResult(
        topic.name,
        created.id,
        num_partitions=len(created.partitions),
        replication_factor=len(created.partitions[0].replicas),
        configs=[
            codec.CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source)
            for entry in topic_config.describe(created.config, node.settings.topic_defaults)
        ],
    )
