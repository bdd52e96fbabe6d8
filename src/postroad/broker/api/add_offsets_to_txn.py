"""AddOffsetsToTxn (25), versions 0–4: the transaction is about to commit offsets of this group."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import GROUP, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasTransactions
from postroad.broker.transactions.coordination import fenced_code
from postroad.errors import ApiError, InvalidGroupId
from postroad.security.resources import Operation
from postroad.transactions.transaction import Producer
from postroad.wire.messages import add_offsets_to_txn as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, transactional_id=Operation.WRITE)

FENCED_FROM: Final = 2


class Uses(HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    who = Producer(request.producer_id, request.producer_epoch)
    name, group_id = request.transactional_id, request.group_id

    def respond(result: Producer | ApiError | None) -> bytes:
        code = fenced_code(result, version >= FENCED_FROM) if isinstance(result, ApiError) else 0
        return codec.encode_response(codec.AddOffsetsToTxnResponse(error_code=code), version)

    if not group_id:
        return respond(InvalidGroupId())
    refusal = call.access.refusal(GROUP, group_id)
    if refusal is not None:
        return respond(refusal)
    return node.transactions.submit(
        call, name, lambda room, now: room.add(name, who, (), (group_id,), 1, now), respond
    )
