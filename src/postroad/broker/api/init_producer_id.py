"""InitProducerId (22), versions 0–5: an id for an idempotent producer.

Ids come from blocks that the coordination store hands out, so that none is given twice, over any
restart. A transactional id gets a clear error: transactions are not there yet.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasProducerIds
from postroad.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    InvalidRequest,
    RequestTimedOut,
    TransactionalIdAuthorizationFailed,
)
from postroad.wire.messages import init_producer_id as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM


class Uses(HasProducerIds, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _answer(node, request, call.version)


async def _answer(node: Uses, request: codec.InitProducerIdRequest, version: int) -> bytes:
    try:
        if request.transactional_id == "":
            raise InvalidRequest("A transactional id must not be empty.")
        if request.transactional_id is not None:
            raise TransactionalIdAuthorizationFailed()
        producer_id = await node.producer_ids.next()
    except RequestTimedOut:  # as Kafka: every client asks again after this code, and after few others
        response = codec.InitProducerIdResponse(error_code=CoordinatorLoadInProgress.code, producer_epoch=-1)
    except ApiError as error:
        response = codec.InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
    else:
        response = codec.InitProducerIdResponse(producer_id=producer_id)
    return codec.encode_response(response, version)
