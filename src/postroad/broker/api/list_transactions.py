"""ListTransactions (66), versions 0–1: the transactional ids that this node coordinates."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasClock, HasTransactions
from postroad.errors import CoordinatorLoadInProgress
from postroad.security.resources import Operation
from postroad.transactions.transaction import TransactionState
from postroad.wire.messages import list_transactions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(transactional_id=Operation.DESCRIBE)

_STATES: Final = {state.value for state in TransactionState}


class Uses(HasClock, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    now_ms, found, code = node.clock.now_ms(), [], 0
    for coordinator in node.transactions.all():
        if not coordinator.loaded:
            code = CoordinatorLoadInProgress.code
            continue
        for name, known in coordinator.transactions.known.items():
            age_ms = now_ms - known.started_ms if known.state is TransactionState.ONGOING else 0
            if (
                call.access.may_transactional_id(name)
                and (not request.state_filters or known.state.value in request.state_filters)
                and (not request.producer_id_filters or known.producer_id in request.producer_id_filters)
                and (request.duration_filter < 0 or age_ms > request.duration_filter)
            ):
                found.append(codec.TransactionState(name, known.producer_id, known.state.value))
    unknown = [state for state in request.state_filters if state not in _STATES]
    response = codec.ListTransactionsResponse(
        error_code=code, unknown_state_filters=unknown, transaction_states=found
    )
    return codec.encode_response(response, call.version)
