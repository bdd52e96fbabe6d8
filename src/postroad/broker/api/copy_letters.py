"""CopyLetters (10005), version 0: dead letters of another node's partitions, for a topic that this one leads.

Postroad's own, between nodes. Not advertised (see `wire.copy_letters`). Answered when they are committed.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.own_batch import append_whole
from postroad.broker.parts import HasClock, HasPartitions, HasTurn
from postroad.errors import ApiError, ClusterAuthorizationFailed, InvalidTopic, NotEnoughReplicas
from postroad.security.resources import Operation
from postroad.wire import copy_letters as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.CLUSTER_ACTION)
ADVERTISED: Final = False


class Uses(HasClock, HasPartitions, HasTurn, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    version, parked = call.version, call.park()

    def reply(error: ApiError | None) -> None:
        if not parked.abandoned:
            response = (
                codec.CopyLettersResponse()
                if error is None
                else codec.CopyLettersResponse(error.code, str(error))
            )
            parked.complete(codec.encode_response(response, version))

    try:
        partition = node.partitions.lead(request.topic_id, request.partition)
        if partition.internal:
            raise InvalidTopic(f"{partition.topic} takes no dead letters.")
        if partition.lacks_replicas:
            raise NotEnoughReplicas()
        append_whole(partition, node.turn, memoryview(request.batch), node.clock.now_ms(), reply)
    except ApiError as error:
        reply(error)
    return parked


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.CopyLettersResponse(error.code, str(error)), call.version)
