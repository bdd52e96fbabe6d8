"""OffsetFetch (9), versions 1–10: how far groups have read; several groups from version 8 on.

A group or partition of which nothing is known is answered with offset -1 and no error, as in Kafka. From
version 7 on a client may insist on stable offsets, and asks again while a transaction may commit one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import loaded_groups
from postroad.broker.parts import HasGroups, HasImage
from postroad.errors import (
    ApiError,
    CoordinatorNotAvailable,
    NotCoordinator,
    UnknownTopicId,
    UnstableOffsetCommit,
)
from postroad.groups.coordinator import Fetched, Groups
from postroad.security.resources import Operation
from postroad.wire.messages import offset_fetch as codec
from postroad.wire.primitives import ZERO_UUID

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE, topic=Operation.DESCRIBE)

_MANY_FROM: Final = 8
_TOPIC_IDS_FROM: Final = 10
NOTHING: Final = -1

Unstable = set[tuple[str, int]]


class Uses(HasGroups, HasImage, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    if call.version >= _MANY_FROM:
        groups = [
            _group(node, call.access, wanted, call.version, request.require_stable)
            for wanted in request.groups
        ]
        return codec.encode_response(codec.OffsetFetchResponse(groups=groups), call.version)
    return codec.encode_response(_one_group(node, call.access, request, call.version), call.version)


def _group(
    node: Uses,
    access: Access,
    wanted: codec.OffsetFetchRequestGroup,
    version: int,
    require_stable: bool,
) -> codec.OffsetFetchResponseGroup:
    if version >= _TOPIC_IDS_FROM:
        for topic in wanted.topics or ():
            found = node.image.topics_by_id.get(topic.topic_id)
            hidden = isinstance(access.topic_refusal(topic.topic_id), UnknownTopicId)
            topic.name = "" if found is None or hidden else found.name
    try:
        offset_keys = (
            None
            if wanted.topics is None
            else [(topic.name, index) for topic in wanted.topics for index in topic.partition_indexes]
        )
        groups = loaded_groups(node, access, wanted.group_id)
        fetched = groups.fetch(wanted.group_id, offset_keys, wanted.member_id, wanted.member_epoch)
        unstable = _unstable(groups, wanted.group_id, fetched) if require_stable else set()
    except ApiError as error:
        return codec.OffsetFetchResponseGroup(wanted.group_id, error_code=error.code)
    unknown = _unknown_ids(wanted) if version >= _TOPIC_IDS_FROM else []
    return codec.OffsetFetchResponseGroup(
        wanted.group_id, _topics(node, access, fetched, unstable, wanted.topics) + unknown
    )


def _unstable(groups: Groups, group_id: str, fetched: Sequence[Fetched]) -> Unstable:
    """Those that an open transaction may commit: whoever insists on stable ones asks again (KIP-447)."""
    return groups.unstable(group_id, [(each.topic, each.partition) for each in fetched])


def _topics(
    node: Uses, access: Access, fetched: Sequence[Fetched], unstable: Unstable, named: object
) -> list[codec.OffsetFetchResponseTopics]:
    topics: dict[str, codec.OffsetFetchResponseTopics] = {}
    for topic, index, value in fetched:
        if not topic:
            continue  # an unknown id: answered by itself
        refusal = access.topic_refusal(topic)
        if refusal is not None and named is None:
            continue
        if topic not in topics:
            known = node.image.topics.get(topic)
            topics[topic] = codec.OffsetFetchResponseTopics(topic, known.id if known else ZERO_UUID)
        if refusal is not None:
            partition = codec.OffsetFetchResponsePartitions(index, NOTHING, NOTHING, "", refusal.code)
        elif (topic, index) in unstable:
            code = UnstableOffsetCommit.code
            partition = codec.OffsetFetchResponsePartitions(index, NOTHING, NOTHING, "", code)
        elif value is None:
            partition = codec.OffsetFetchResponsePartitions(index, NOTHING, NOTHING, "")
        else:
            partition = codec.OffsetFetchResponsePartitions(
                index, value.offset, value.leader_epoch, value.metadata
            )
        topics[topic].partitions.append(partition)
    return list(topics.values())


def _unknown_ids(wanted: codec.OffsetFetchRequestGroup) -> list[codec.OffsetFetchResponseTopics]:
    return [
        codec.OffsetFetchResponseTopics(
            "",
            topic.topic_id,
            [
                codec.OffsetFetchResponsePartitions(index, NOTHING, NOTHING, "", UnknownTopicId.code)
                for index in topic.partition_indexes
            ],
        )
        for topic in wanted.topics or ()
        if not topic.name
    ]


def _one_group(
    node: Uses, access: Access, request: codec.OffsetFetchRequest, version: int
) -> codec.OffsetFetchResponse:
    """Versions 1–7: one group; version 1 has no error for the group as a whole.

    Later ones do, and Kafka answers no partitions with it. Here each has the error, too: aiokafka (0.14)
    looks at these only, and would take a group that is being loaded for one that has read nothing.
    """
    offset_keys = (
        None
        if request.topics is None
        else [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    )
    code, unstable = 0, Unstable()
    try:
        groups = loaded_groups(node, access, request.group_id)
        fetched = groups.fetch(request.group_id, offset_keys)
        if request.require_stable:
            unstable = _unstable(groups, request.group_id, fetched)
    except ApiError as error:
        code = error.code
        fetched = [Fetched(topic, index, None) for topic, index in offset_keys or ()]
    topics = [
        codec.OffsetFetchResponseTopic(
            topic.name,
            [
                codec.OffsetFetchResponsePartition(
                    p.partition_index,
                    p.committed_offset,
                    p.committed_leader_epoch,
                    p.metadata,
                    _of_partition(code) if code else p.error_code,
                )
                for p in topic.partitions
            ],
        )
        for topic in _topics(node, access, fetched, unstable, request.topics)
    ]
    return codec.OffsetFetchResponse(topics=topics, error_code=code)


def _of_partition(code: int) -> int:
    """What a partition tells of the group's error: all clients ask for the coordinator again after it."""
    return NotCoordinator.code if code == CoordinatorNotAvailable.code else code
