"""ConsumerGroupHeartbeat (68), versions 0–1: everything that a member of the newer protocol says (KIP-848).

Join, leave, subscriptions, the partitions it owns, and in the answer those it should own.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import client_of, new_member_id, submit
from postroad.broker.parts import HasGroups, HasRuntime, HasSubscriptions
from postroad.errors import ApiError, GroupIdNotFound
from postroad.groups.answers import Answer, HeartbeatAnswer
from postroad.groups.requests import JOIN_EPOCH, HeartbeatRequest, Partitions, TopicPartition
from postroad.security.resources import Operation
from postroad.wire.messages import consumer_group_heartbeat as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.DESCRIBE)


class Uses(HasGroups, HasRuntime, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    wanted = HeartbeatRequest(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if request.subscribed_topic_names is None else tuple(request.subscribed_topic_names),
        request.subscribed_topic_regex,
        request.server_assignor,
        _owned(request),
        client_of(call),
    )
    for name in request.subscribed_topic_names or ():
        refusal = call.access.topic_refusal(name)
        if refusal is not None:
            return codec.encode_response(_response(refusal), call.version)
    fresh_id = new_member_id(call, node.runtime.random)
    version = call.version
    return submit(
        node,
        call,
        request.group_id,
        lambda groups, token, now: groups.consumer_heartbeat(wanted, fresh_id, token, now),
        lambda answer: codec.encode_response(_response(answer), version),
        if_subscription=GroupIdNotFound if request.member_epoch == JOIN_EPOCH else None,
    )


def _owned(request: codec.ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return frozenset(
        TopicPartition(topic.topic_id, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    )


def _response(answer: Answer) -> codec.ConsumerGroupHeartbeatResponse:
    if isinstance(answer, ApiError):
        return codec.ConsumerGroupHeartbeatResponse(error_code=answer.code, error_message=str(answer))
    assert isinstance(answer, HeartbeatAnswer)
    return codec.ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None if answer.assignment is None else codec.Assignment(_by_topic(answer.assignment)),
    )


def _by_topic(partitions: Partitions) -> list[codec.ResponseTopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [codec.ResponseTopicPartitions(topic_id, indexes) for topic_id, indexes in topics.items()]
