"""OffsetCommit (8), versions 2–10: how far a group has read; answered when it is durable (L14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import submit
from postroad.broker.parts import HasGroups, HasImage, HasSubscriptions
from postroad.errors import ApiError, GroupIdNotFound, UnknownTopicId, UnknownTopicOrPartition
from postroad.groups.answers import Answer, Committed
from postroad.groups.requests import CommitRequest, OffsetToCommit
from postroad.security.resources import Operation
from postroad.wire.messages import offset_commit as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.READ)

_TOPIC_IDS_FROM: Final = 10


class Uses(HasGroups, HasImage, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    version = call.version
    if version >= _TOPIC_IDS_FROM:
        _name_topics(node, call.access, request)
    access = call.access
    known = list(_known(node, access, request))
    is_member = request.generation_id_or_member_epoch >= 0
    wanted = CommitRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        tuple(offset for offset, _ in known),
        request.retention_time_ms,
    )
    return submit(
        node,
        call,
        request.group_id,
        lambda groups, token, now: groups.commit(wanted, token, now),
        lambda answer: codec.encode_response(
            _response(answer, access, request, [p for _, p in known], version), version
        ),
        shared=True,
        if_subscription=None if is_member else GroupIdNotFound,
    )


def _name_topics(node: Uses, access: Access, request: codec.OffsetCommitRequest) -> None:
    for topic in request.topics:
        found = node.image.topics_by_id.get(topic.topic_id)
        hidden = isinstance(access.topic_refusal(topic.topic_id), UnknownTopicId)
        topic.name = "" if found is None or hidden else found.name


def _known(
    node: Uses, access: Access, request: codec.OffsetCommitRequest
) -> Iterator[tuple[OffsetToCommit, codec.OffsetCommitRequestPartition]]:
    """The offsets of partitions that exist; the others are answered with an error of their own."""
    for topic in request.topics:
        if not access.may_topic(topic.name):
            continue
        for p in topic.partitions:
            if node.image.has_partition(topic.name, p.partition_index):
                yield (
                    OffsetToCommit(
                        topic.name,
                        p.partition_index,
                        p.committed_offset,
                        p.committed_leader_epoch,
                        p.committed_metadata or "",
                    ),
                    p,
                )


def _response(
    answer: Answer,
    access: Access,
    request: codec.OffsetCommitRequest,
    known: list[codec.OffsetCommitRequestPartition],
    version: int,
) -> codec.OffsetCommitResponse:
    if isinstance(answer, ApiError):
        codes = {id(p): answer.code for topic in request.topics for p in topic.partitions}
    else:
        assert isinstance(answer, Committed)
        codes = {
            id(p): 0 if error is None else error.code for p, error in zip(known, answer.errors, strict=True)
        }
    topics = [
        codec.OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [
                codec.OffsetCommitResponsePartition(
                    p.partition_index, codes.get(id(p), _refusal(access, topic, version))
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return codec.OffsetCommitResponse(topics=topics)


def _refusal(access: Access, topic: codec.OffsetCommitRequestTopic, version: int) -> int:
    """An id that no topic has, a topic that is not the caller's, or a partition that it does not have."""
    if version >= _TOPIC_IDS_FROM and not topic.name:
        return UnknownTopicId.code
    refusal = access.topic_refusal(topic.name)
    return UnknownTopicOrPartition.code if refusal is None else refusal.code
