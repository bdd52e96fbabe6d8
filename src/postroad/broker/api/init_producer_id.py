"""InitProducerId (22), versions 0–5: an id for an idempotent producer, or for a transactional one.

Ids come from blocks that the coordination store hands out, so that none is given twice, over any
restart. A transactional id keeps its producer id and gets a higher epoch: whoever used it before is fenced,
and what it left open is aborted first.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasProducerIds, HasTasks, HasTransactions
from postroad.broker.transactions.coordination import fenced_code
from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    CoordinatorLoadInProgress,
    RequestTimedOut,
)
from postroad.security.resources import Operation
from postroad.transactions.transaction import Producer
from postroad.wire.messages import init_producer_id as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(transactional_id=Operation.WRITE)

FENCED_FROM: Final = 4  # clients that speak an older version know an old epoch only


class Uses(HasProducerIds, HasTasks, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    if request.transactional_id is None:
        if not call.access.may_cluster(Operation.IDEMPOTENT_WRITE) and not call.access.may_write_any_topic():
            return _refusal(ClusterAuthorizationFailed(), call.version)
        return _answer(node, call.version)
    return _begin(node, call, request, request.transactional_id)


async def _answer(node: Uses, version: int) -> bytes:
    try:
        producer_id = await node.producer_ids.next()
    except ApiError as error:
        return _refusal(error, version)
    return codec.encode_response(codec.InitProducerIdResponse(producer_id=producer_id), version)


def _begin(node: Uses, call: Call, request: codec.InitProducerIdRequest, transactional_id: str) -> Result:
    """The coordinator decides with a new producer id in hand, whether it is needed or not."""
    version, serial = call.version, call.connection.serial
    expected = Producer(request.producer_id, request.producer_epoch) if request.producer_id >= 0 else None
    answer = call.park()

    def reply(result: Producer | ApiError | None) -> None:
        node.transactions.count_fenced(result)
        if not answer.abandoned:
            answer.complete(_response(result, version))

    async def decide() -> None:
        try:
            fresh_id = await node.producer_ids.next()
            coordinator = node.transactions.find(transactional_id)
            room = coordinator.transactions
            room.admit_connection(transactional_id, serial)
            tries = iter((expected,))  # after a fence it is decided anew, and expected is nobody

            def begun(result: Producer | ApiError | None) -> None:
                try:
                    room.admit_connection(transactional_id, serial)  # of a new id it is noted only now
                except ApiError as error:
                    result = error
                reply(result)

            coordinator.decide(
                transactional_id,
                lambda now: room.begin(
                    transactional_id, request.transaction_timeout_ms, next(tries, None), fresh_id, now
                ),
                begun,
            )
        except ApiError as error:
            reply(error)

    try:
        call.access.check_transactional_id(transactional_id)
        node.transactions.find(transactional_id)
    except ApiError as error:
        reply(error)
    else:
        node.tasks.start(decide(), "init-producer-id")
    return answer


def _response(result: Producer | ApiError | None, version: int) -> bytes:
    if isinstance(result, ApiError):
        return _refusal(result, version)
    assert result is not None
    return codec.encode_response(codec.InitProducerIdResponse(0, 0, *result), version)


def _refusal(error: ApiError, version: int) -> bytes:
    code = fenced_code(error, version >= FENCED_FROM)
    if isinstance(
        error, RequestTimedOut
    ):  # as Kafka: every client asks again after this, and after few others
        code = CoordinatorLoadInProgress.code
    return codec.encode_response(codec.InitProducerIdResponse(error_code=code, producer_epoch=-1), version)
