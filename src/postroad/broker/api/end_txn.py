"""EndTxn (26), versions 0–5: commit or abort.

Answered when the verdict is committed: from then on it stands, whatever happens. The markers follow, and the
next request of the transactional id waits for them. From version 5 on the producer gets a higher epoch with
each answer, or a new producer id when its epochs are used up (KIP-890).
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasProducerIds, HasTasks, HasTransactions
from postroad.broker.transactions.coordination import Respond, fenced_code
from postroad.errors import ApiError
from postroad.security.resources import Operation
from postroad.transactions.transaction import EPOCH_MAX, NONE, Producer
from postroad.wire.messages import end_txn as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(transactional_id=Operation.WRITE)

FENCED_FROM: Final = 2
OWN_EPOCHS_FROM: Final = 5  # each transaction has one


class Uses(HasProducerIds, HasTasks, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    who, name = Producer(request.producer_id, request.producer_epoch), request.transactional_id

    def respond(result: Producer | ApiError | None) -> bytes:
        if isinstance(result, ApiError) or result is None:
            code = 0 if result is None else fenced_code(result, version >= FENCED_FROM)
            return codec.encode_response(codec.EndTxnResponse(error_code=code), version)
        return codec.encode_response(
            codec.EndTxnResponse(producer_id=result.producer_id, producer_epoch=result.epoch), version
        )

    if version >= OWN_EPOCHS_FROM:
        return _end_epoch(node, call, request, respond)
    return node.transactions.submit(
        call, name, lambda room, now: room.end(name, who, request.committed, 1, NONE, now), respond
    )


def _end_epoch(node: Uses, call: Call, request: codec.EndTxnRequest, respond: Respond) -> Answer:
    """The coordinator decides with a new producer id in hand where the epoch may be the last one."""
    who, name = Producer(request.producer_id, request.producer_epoch), request.transactional_id
    answer = call.park()
    try:
        call.access.check_transactional_id(name)
    except ApiError as error:
        answer.complete(respond(error))
        return answer

    def decide(fresh_id: int) -> None:
        node.transactions.hand_over(
            answer, name, lambda room, now: room.end(name, who, request.committed, 2, fresh_id, now), respond
        )

    async def take_id() -> None:
        try:
            decide(await node.producer_ids.next())
        except ApiError as error:
            if not answer.abandoned:
                answer.complete(respond(error))

    if who.epoch < EPOCH_MAX:
        decide(NONE)
    else:
        node.tasks.start(take_id(), "end-transaction")
    return answer
