"""Metadata (3), versions 0–13: nodes, topics and who leads their partitions; creates topics on demand.

An empty list asks for all topics in version 0 and for none later on; null asks for all. A topic that
does not exist is created where client and node both allow it (`topics.auto_create`); the answer then
waits until the topic can be used.

Only nodes that serve are offered, and for a moment those that fell silent. The answer waits for a while
until the leaders that it names are known to live (`leader_checks`). A partition without one has
LEADER_NOT_AVAILABLE, and for a moment so has one whose leader was just found dead (`orphans`): clients ask
again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from postroad.broker.access import CLUSTER, NOT_ASKED, TOPIC, Access, Rights
from postroad.broker.cluster_view import LEADERLESS, ClusterView, Leadership
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasLeaderChecks, HasRegistration, HasSettings, HasTopicChanges
from postroad.cluster.image import Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.topics import name_error
from postroad.errors import (
    ApiError,
    LeaderNotAvailable,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from postroad.security.resources import CLUSTER_NAME, Operation
from postroad.wire.messages import metadata as codec
from postroad.wire.primitives import ZERO_UUID

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DESCRIBE)

_AUTO_CREATION_ASKED_FROM: Final = 4  # before that every client meant it
_NULL_NAMES_FROM: Final = 12  # of topics that were asked for by an id that nobody knows


class Leaders(NamedTuple):
    """Who leads a partition, as this answer says."""

    view: ClusterView
    orphans: Container[tuple[bytes, int]]

    def of(self, topic_id: bytes, index: int, state: PartitionState) -> Leadership:
        if (topic_id, index) in self.orphans:
            return LEADERLESS
        return self.view.leadership(state)


class Uses(HasImage, HasLeaderChecks, HasRegistration, HasSettings, HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    may_create = node.settings.topics.auto_create and (
        request.allow_auto_topic_creation or call.version < _AUTO_CREATION_ASKED_FROM
    )
    missing = [name for name in _names(request) if name not in node.image.topics]
    if missing and may_create:
        return _create_and_answer(node, call, request, missing)
    if node.leader_checks.are_needed(_topics(node, call.version, request)):
        return _check_and_answer(node, call, request)
    return _respond(node, call, request, {})


async def _check_and_answer(node: Uses, call: Call, request: codec.MetadataRequest) -> bytes:
    await node.leader_checks.wait(partial(_topics, node, call.version, request))
    return _respond(node, call, request, {})


async def _create_and_answer(
    node: Uses, call: Call, request: codec.MetadataRequest, missing: list[str]
) -> bytes:
    refused: dict[str, ApiError] = {}
    access = call.access
    for name in dict.fromkeys(missing):
        try:
            access.check_topic(name)
            if not access.may_cluster(Operation.CREATE):
                access.check_topic(name, Operation.CREATE)
            await node.topic_changes.create(name)
        except TopicAlreadyExists as exists:  # by another request meanwhile; or its name collides
            if name not in node.image.topics:
                refused[name] = exists
        except (
            RequestTimedOut
        ):  # by the store: known topics are answered all the same, and clients ask again for this one
            refused[name] = LeaderNotAvailable()
        except ApiError as error:
            refused[name] = error
    return _respond(node, call, request, refused)


def _wants_all(version: int, request: codec.MetadataRequest) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _topics(node: Uses, version: int, request: codec.MetadataRequest) -> Iterable[Topic]:
    """Those that the request asks for, as far as they are there."""
    image = node.image
    if _wants_all(version, request):
        return image.topics.values()
    wanted = request.topics or ()
    found = (image.topics_by_id.get(each.topic_id) or image.topics.get(each.name or "") for each in wanted)
    return [topic for topic in found if topic is not None]


def _names(request: codec.MetadataRequest) -> list[str]:
    return [topic.name for topic in request.topics or () if topic.name is not None]


def _respond(node: Uses, call: Call, request: codec.MetadataRequest, refused: dict[str, ApiError]) -> bytes:
    image, version, access = node.image, call.version, call.access
    view = ClusterView(image, node.registration.me, call.connection.listener)
    leaders = Leaders(view, node.leader_checks.orphans())
    if _wants_all(version, request):
        seen = (topic for topic in image.topics.values() if access.may_topic(topic.name))
        topics = [_topic(leaders, access, topic, request) for topic in seen]
    else:
        topics = [_wanted(node, access, leaders, wanted, request, refused) for wanted in request.topics or ()]
        if version < _NULL_NAMES_FROM:
            for topic in topics:
                topic.name = topic.name or ""
    asked = request.include_cluster_authorized_operations and access.may_cluster(Operation.DESCRIBE)
    response = codec.MetadataResponse(
        brokers=[
            codec.MetadataResponseBroker(entry.id, *view.address(entry), entry.rack or None)
            for entry in sorted([*view.nodes(), *node.leader_checks.silent_nodes()], key=attrgetter("id"))
        ],
        cluster_id=image.cluster_id,
        controller_id=view.controller(),
        topics=topics,
        cluster_authorized_operations=access.operations(CLUSTER, CLUSTER_NAME) if asked else NOT_ASKED,
    )
    return codec.encode_response(response, version)


def _wanted(
    node: Uses,
    access: Access,
    leaders: Leaders,
    wanted: codec.MetadataRequestTopic,
    request: codec.MetadataRequest,
    refused: dict[str, ApiError],
) -> codec.MetadataResponseTopic:
    by_id = wanted.topic_id != ZERO_UUID
    refusal = access.topic_refusal(wanted.topic_id if by_id else wanted.name or "")
    if by_id:
        found = node.image.topics_by_id.get(wanted.topic_id)
        error: ApiError = UnknownTopicId()
    else:
        found = node.image.topics.get(wanted.name or "")
        error = refused.get(wanted.name or "") or name_error(wanted.name) or UnknownTopicOrPartition()
    if refusal is not None:
        error = refusal
    elif found is not None:
        return _topic(leaders, access, found, request)
    return codec.MetadataResponseTopic(
        error_code=error.code, name=wanted.name if not by_id else None, topic_id=wanted.topic_id
    )


def _topic(
    leaders: Leaders, access: Access, topic: Topic, request: codec.MetadataRequest
) -> codec.MetadataResponseTopic:
    asked = request.include_topic_authorized_operations
    return codec.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[
            _partition(leaders, topic.id, index, state) for index, state in enumerate(topic.partitions)
        ],
        topic_authorized_operations=access.operations(TOPIC, topic.name) if asked else NOT_ASKED,
    )


def _partition(
    leaders: Leaders, topic_id: bytes, index: int, state: PartitionState
) -> codec.MetadataResponsePartition:
    error, leader = leaders.of(topic_id, index, state)
    return codec.MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=leaders.view.offline(state),
    )
