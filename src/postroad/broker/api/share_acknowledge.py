"""ShareAcknowledge (79), versions 1–2: messages are accepted, released, rejected; locks are renewed (2).

The answer waits until what was said is durable (S4). With the session's final epoch the member leaves: what
it still holds is released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.broker.dispatch import Call, Result
from postroad.broker.subscriptions.acknowledgements import Acknowledgements, TopicPartition
from postroad.broker.subscriptions.sessions import FINAL_EPOCH, INITIAL_EPOCH
from postroad.errors import ApiError, InvalidRequest, InvalidShareSessionEpoch
from postroad.queues.share_partition import AckBatch
from postroad.wire.messages import share_acknowledge as codec

if TYPE_CHECKING:
    from postroad.broker.node import Node

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM

MEMBER_CHARACTERS_MAX: Final = 36  # a UUID's, as in Kafka


def handle(node: Node, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    group, member, version = request.group_id or "", request.member_id or "", call.version
    try:
        check_member(group, member)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise InvalidShareSessionEpoch("A session is opened by ShareFetch.")
        session = node.subscriptions.sessions.go_on(
            group, member, request.share_session_epoch, call.connection
        )
    except ApiError as error:
        refused = codec.ShareAcknowledgeResponse(error_code=error.code, error_message=str(error))
        return codec.encode_response(refused, version)
    answer = call.park()

    def done() -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            node.subscriptions.end_session(session)
        if not answer.abandoned:
            lock_ms = node.subscriptions.subscription(group).settings.lock_ms
            answer.complete(codec.encode_response(_response(acknowledgements.errors, lock_ms), version))

    acknowledgements = Acknowledgements(node, group, member, request.is_renew_ack, done)
    acknowledgements.take(_named(request))
    return answer


def check_member(group: str, member: str) -> None:
    if not group:
        raise InvalidRequest("The group id is empty.")
    if not 0 < len(member) <= MEMBER_CHARACTERS_MAX:
        raise InvalidRequest(f"A member id has 1 to {MEMBER_CHARACTERS_MAX} characters.")


def _named(request: codec.ShareAcknowledgeRequest) -> dict[TopicPartition, list[AckBatch]]:
    named: dict[TopicPartition, list[AckBatch]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            named.setdefault((topic.topic_id, partition.partition_index), []).extend(
                AckBatch(given.first_offset, given.last_offset, given.acknowledge_types)
                for given in partition.acknowledgement_batches
            )
    return named


def _response(errors: dict[TopicPartition, ApiError | None], lock_ms: int) -> codec.ShareAcknowledgeResponse:
    topics: dict[bytes, list[codec.PartitionData]] = {}
    for (topic_id, index), error in errors.items():
        data = codec.PartitionData(partition_index=index, current_leader=codec.LeaderIdAndEpoch(-1, -1))
        if error is not None:
            data.error_code, data.error_message = error.code, str(error)
        topics.setdefault(topic_id, []).append(data)
    responses = [codec.ShareAcknowledgeTopicResponse(*topic) for topic in topics.items()]
    return codec.ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms, responses=responses)
