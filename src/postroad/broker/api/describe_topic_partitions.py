"""DescribeTopicPartitions (75), version 0: topics page by page, for large clusters (KIP-966)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Final, Protocol

from postroad.broker.access import TOPIC, Access, Rights
from postroad.broker.cluster_view import ClusterView
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasRegistration
from postroad.cluster.image import Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.topics import name_error
from postroad.errors import InvalidRequest, ProtocolError, UnknownTopicOrPartition
from postroad.security.resources import Operation
from postroad.wire.messages import describe_topic_partitions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DESCRIBE)

PARTITIONS_MAX: Final = 2000  # in one answer, whatever was asked for


class Uses(HasImage, HasRegistration, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    if request.cursor is not None and request.cursor.partition_index < 0:
        raise ProtocolError(f"{InvalidRequest.summary} (a cursor below zero)")
    left = max(1, min(request.response_partition_limit, PARTITIONS_MAX))
    response = codec.DescribeTopicPartitionsResponse()
    view = ClusterView(node.image, node.registration.me, call.connection.listener)
    for name, first in _wanted(node, call.access, request):
        refusal = call.access.topic_refusal(name)
        if refusal is not None:
            response.topics.append(codec.DescribeTopicPartitionsResponseTopic(refusal.code, name))
            continue
        topic = node.image.topics.get(name)
        if topic is None:
            error = name_error(name) or UnknownTopicOrPartition()
            response.topics.append(codec.DescribeTopicPartitionsResponseTopic(error.code, name))
            continue
        if left == 0:
            response.next_cursor = codec.ResponseCursor(name, first)
            break
        shown = topic.partitions[first : first + left]
        response.topics.append(_topic(view, call.access, topic, first, len(shown)))
        left -= len(shown)
        if first + len(shown) < len(topic.partitions):
            response.next_cursor = codec.ResponseCursor(name, first + len(shown))
            break
    return codec.encode_response(response, call.version)


def _wanted(
    node: Uses, access: Access, request: codec.DescribeTopicPartitionsRequest
) -> Iterator[tuple[str, int]]:
    """(topic, first partition) in order, from the cursor on; rights are looked up as far as one goes on."""
    named = {topic.name for topic in request.topics}
    names = sorted(named or node.image.topics)
    cursor = request.cursor
    begun, first = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    for name in islice(names, bisect_left(names, begun), None):
        if named or access.may_topic(name):
            yield name, first if name == begun else 0


def _topic(
    view: ClusterView, access: Access, topic: Topic, first: int, count: int
) -> codec.DescribeTopicPartitionsResponseTopic:
    return codec.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[
            _partition(view, index, state)
            for index, state in enumerate(topic.partitions[first : first + count], first)
        ],
        topic_authorized_operations=access.operations(TOPIC, topic.name),
    )


def _partition(
    view: ClusterView, index: int, state: PartitionState
) -> codec.DescribeTopicPartitionsResponsePartition:
    error, leader = view.leadership(state)
    return codec.DescribeTopicPartitionsResponsePartition(
        error,
        index,
        leader,
        state.leader_epoch,
        list(state.replicas),
        list(state.isr),
        # Empty and not null, which the schema allows: Java's admin client (3.9) fails over null.
        eligible_leader_replicas=list(state.elr),
        last_known_elr=[],
        offline_replicas=view.offline(state),
    )
