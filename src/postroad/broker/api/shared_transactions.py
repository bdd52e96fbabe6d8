"""SharedTransactions (10010), version 0: several producers write in one transaction, which has one verdict.

Postroad's own: the tasks of a Spark job use it. Not advertised (see `wire.shared_transactions`). Whoever asks
for too much hears why; a request waits while the transaction before is being completed.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasProducerIds, HasTasks, HasTransactions
from postroad.errors import ApiError, UnsupportedVersion
from postroad.security.resources import Operation
from postroad.transactions.shared import DONE
from postroad.transactions.transaction import Producer
from postroad.wire import shared_transactions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(transactional_id=Operation.WRITE)
ADVERTISED: Final = False

NOT_YET: Final = "Some node of the cluster runs a version that does not know shared transactions."


class Uses(HasProducerIds, HasTasks, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    order = codec.decode_request(call.body, call.version)
    answer = call.park()
    try:
        call.access.check_transactional_id(order.transactional_id)
        node.transactions.check(order.transactional_id)
        if not node.transactions.may_be_shared:
            raise UnsupportedVersion(NOT_YET)
        node.transactions.find(order.transactional_id)
    except ApiError as error:
        _complete(node, answer, error, call.version)
        return answer
    if isinstance(order, codec.Enter):
        node.tasks.start(_enter(node, answer, order, call.version), "enter-transaction")
    else:
        _finish(node, answer, order, call.version)
    return answer


async def _enter(node: Uses, answer: Answer, order: codec.Enter, version: int) -> None:
    """The coordinator decides with new producer ids in hand, whether they are needed or not."""
    try:
        fresh_ids = await node.producer_ids.next(), await node.producer_ids.next()
        coordinator = node.transactions.find(order.transactional_id)
        room = coordinator.transactions
        coordinator.decide(
            order.transactional_id,
            lambda now: room.enter(
                order.transactional_id, order.run, order.batch, order.timeout_ms, fresh_ids, now
            ),
            lambda result: _complete(node, answer, result, version),
        )
    except ApiError as error:
        _complete(node, answer, error, version)


def _finish(node: Uses, answer: Answer, order: codec.Finish, version: int) -> None:
    kept = None if order.kept is None else [Producer(*each) for each in order.kept]
    try:
        coordinator = node.transactions.find(order.transactional_id)
        room = coordinator.transactions
        coordinator.decide(
            order.transactional_id,
            lambda now: room.finish(order.transactional_id, order.run, order.batch, kept, now),
            lambda result: _complete(node, answer, result, version),
        )
    except ApiError as error:
        _complete(node, answer, error, version)


def _complete(node: Uses, answer: Answer, result: Producer | ApiError | None, version: int) -> None:
    node.transactions.count_fenced(result)
    if answer.abandoned:
        return
    if isinstance(result, ApiError):
        response = codec.SharedAnswer(result.code, str(result))
    elif result is None or result == DONE:
        response = codec.SharedAnswer(is_done=result is not None)
    else:
        response = codec.SharedAnswer(0, None, *result)
    answer.complete(codec.encode_response(response, version))
