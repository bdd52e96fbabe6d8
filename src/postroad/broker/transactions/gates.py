"""The gate of a producer at a partition: batches that may open a transaction wait here for its coordinator.

With version 1 they are verified: the partition was added to the transaction before. With version 2 the
first batch makes it part of the transaction (`joins`). Where this node coordinates the transactional id a
verification is there at once. Otherwise a record is written or another node is asked, and whatever the
producer sends to this partition meanwhile follows in its order, and is refused if what came before it was: a
batch that overtook another would be out of sequence, or be taken for the first of all. A producer has a gate
for each epoch, so that what is refused of one is nothing to the next.

The answer may be late: if the marker of a transaction of the same epoch has come meanwhile, the batches
behind the gate are refused. They would open a transaction that nobody ends, or come into the producer's next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from postroad.broker.partition import Partition
from postroad.broker.parts import HasTasks, HasTransactions
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidTransactionState,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    TryAgain,
)
from postroad.transactions.transaction import Producer
from postroad.wire.batch import PRODUCER_EPOCH, PRODUCER_ID, Fields

Verified = Callable[[ApiError | None], None]
"""Called once, with what the producer is told, or None: the batch may come in, now and not later."""


class Uses(HasTasks, HasTransactions, Protocol):
    """What it takes of the node."""


class Gate:
    """Where the batches of one producer and epoch wait, one behind the other."""

    __slots__ = ("has_ended", "last")

    def __init__(self) -> None:
        self.last: asyncio.Future[ApiError | None] | None = None  # what became of the last of them
        self.has_ended = False  # the transaction of those that wait


def verify(
    node: Uses,
    transactional_id: str,
    header: Fields,
    partition: Partition,
    verified: Verified,
    *,
    joins: bool,
) -> None:
    """`joins`: the partition becomes part of the transaction if it is not yet (KIP-890)."""
    who = Producer(header[PRODUCER_ID], header[PRODUCER_EPOCH])
    places = [(partition.topic_id, partition.index)]
    gate = partition.gates.get(who)
    if gate is None and not joins and not node.transactions.is_elsewhere(transactional_id):
        try:
            node.transactions.verify_here(transactional_id, who, places, ())
        except ApiError as error:
            verified(_for_producer(error, joins))
        else:
            verified(None)
        return
    if gate is None:
        gate = partition.gates[who] = Gate()
    before, mine = gate.last, asyncio.get_running_loop().create_future()
    gate.last = mine

    async def ask(gate: Gate) -> None:
        error: ApiError | None = NotLeaderOrFollower("The node stops.")
        transactions = node.transactions
        try:
            error = None if before is None else await before
            if error is None:
                await (transactions.join if joins else transactions.verify)(transactional_id, who, places, ())
                if gate.has_ended:
                    raise InvalidTransactionState("The transaction has ended.")
        except ApiError as refusal:
            error = _for_producer(refusal, joins)
        finally:
            if gate.last is mine and partition.gates.get(who) is gate:
                del partition.gates[who]
            mine.set_result(error)
            verified(error)

    node.tasks.start(ask(gate), "verify-transaction")


def note_end(partition: Partition, who: Producer) -> None:
    """The producer's transaction of this epoch has ended here: what waits to open it comes too late."""
    gate = partition.gates.pop(who, None)
    if gate is not None:
        gate.has_ended = True


def _for_producer(error: ApiError, joins: bool) -> ApiError:
    """Produce knows no errors of coordinators: what passes is told as something that passes."""
    if isinstance(error, ConcurrentTransactions) and not joins:
        return InvalidTransactionState("The transaction is ending.")
    if isinstance(error, TryAgain):
        return NotEnoughReplicas(f"The transaction's coordinator can't say now: {error}")
    return error
