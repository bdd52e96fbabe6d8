"""EndTxn (26), versions 0–4: commit or abort.

Answered when the verdict is committed: from then on it stands, whatever happens. The markers follow, and the
next request of the transactional id waits for them.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasTransactions
from postroad.broker.transactions.coordination import fenced_code
from postroad.errors import ApiError
from postroad.transactions.transaction import NONE, Producer
from postroad.wire.messages import end_txn as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, 4)  # 5 is for producers with an epoch for each transaction (KIP-890)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM

FENCED_FROM: Final = 2


class Uses(HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    who, name = Producer(request.producer_id, request.producer_epoch), request.transactional_id

    def respond(result: Producer | ApiError | None) -> bytes:
        code = fenced_code(result, version >= FENCED_FROM) if isinstance(result, ApiError) else 0
        return codec.encode_response(codec.EndTxnResponse(error_code=code), version)

    return node.transactions.submit(
        call, name, lambda room, now: room.end(name, who, request.committed, 1, NONE, now), respond
    )
