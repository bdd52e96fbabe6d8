"""DescribeTransactions (65), version 0: what is known of transactional ids."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasTransactions
from postroad.cluster.ids import topic_of_pledges
from postroad.errors import ApiError, TransactionalIdNotFound
from postroad.security.resources import Operation
from postroad.transactions.transaction import Transaction
from postroad.wire.messages import describe_transactions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DESCRIBE, transactional_id=Operation.DESCRIBE)


class Uses(HasImage, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    states = [_describe(node, call.access, name) for name in request.transactional_ids]
    return codec.encode_response(codec.DescribeTransactionsResponse(transaction_states=states), call.version)


def _describe(node: Uses, access: Access, name: str) -> codec.TransactionState:
    try:
        access.check_transactional_id(name)
        known = node.transactions.find(name).transactions.known.get(name)
        if known is None:
            raise TransactionalIdNotFound()
    except ApiError as error:
        return codec.TransactionState(error_code=error.code, transactional_id=name)
    return codec.TransactionState(
        0,
        name,
        known.state.value,
        known.timeout_ms,
        known.started_ms,
        known.producer_id,
        known.epoch,
        _topics(node, access, known),
    )


def _topics(node: Uses, access: Access, known: Transaction) -> list[codec.TopicData]:
    """The partitions that it writes to, and those where it accepts messages of subscriptions."""
    by_id, found = node.image.topics_by_id, dict[bytes, set[int]]()
    for named, index in known.places():
        found.setdefault(topic_of_pledges(named) or named, set()).add(index)
    return [
        codec.TopicData(by_id[topic].name, sorted(indexes))
        for topic, indexes in sorted(found.items())
        if topic in by_id and access.may_topic(by_id[topic].name)
    ]
