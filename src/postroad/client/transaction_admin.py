"""Transactions as an operator sees them: listed, described, aborted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from postroad.client.client import Client
from postroad.client.groups import raise_for
from postroad.client.metadata import TopicPartition
from postroad.errors import ApiError, TransactionalIdNotFound
from postroad.wire.messages import (
    describe_producers,
    describe_transactions,
    init_producer_id,
    list_transactions,
)

STATE_TOPIC: Final = "__transaction_state"
ONGOING: Final = "Ongoing"
UNDER_WAY: Final = (ONGOING, "PrepareCommit", "PrepareAbort")
NONE: Final = -1
DESCRIBED_AT_ONCE: Final = 1000  # transactional ids in one request

T = TypeVar("T")


class TransactionListing(NamedTuple):
    transactional_id: str
    state: str
    producer_id: int
    coordinator: int
    started_ms: int | None  # wall clock; None where nothing is open


class Reached(NamedTuple):
    """A partition that the transaction writes to; `first_offset` is None where it has written nothing yet, or
    where nobody leads."""

    partition: TopicPartition
    first_offset: int | None


class TransactionDescription(NamedTuple):
    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    started_ms: int | None  # wall clock; None where nothing is open
    coordinator: int
    reached: tuple[Reached, ...]

    @property
    def is_open(self) -> bool:
        return self.state == ONGOING

    @property
    def is_under_way(self) -> bool:
        """Whether it is open or about to end."""
        return self.state in UNDER_WAY


async def list_all(
    client: Client, states: Sequence[str] = (), older_than_ms: int = NONE
) -> list[TransactionListing]:
    """The transactional ids of all nodes: each coordinates some.

    `older_than_ms`: only those with a transaction that has been open for longer.
    """
    request = list_transactions.ListTransactionsRequest(
        state_filters=list(states), duration_filter=older_than_ms
    )

    async def attempt() -> list[TransactionListing]:
        found: dict[str, TransactionListing] = {}
        for node in await client.nodes():
            answer = await client.call(list_transactions, request, node=node)
            raise_for(answer)
            listed = answer.transaction_states
            under_way = [each.transactional_id for each in listed if each.transaction_state in UNDER_WAY]
            started = await _started(client, node, under_way)
            for each in listed:
                name = each.transactional_id
                found[name] = TransactionListing(
                    name, each.transaction_state, each.producer_id, node, started.get(name)
                )
        return sorted(found.values())

    return await client.retry(attempt)


async def _started(client: Client, node: int, names: Sequence[str]) -> dict[str, int]:
    """When the transactions of these ids began; one that has ended meanwhile is left out."""
    found: dict[str, int] = {}
    for first in range(0, len(names), DESCRIBED_AT_ONCE):
        wanted = list(names[first : first + DESCRIBED_AT_ONCE])
        request = describe_transactions.DescribeTransactionsRequest(transactional_ids=wanted)
        for each in (await client.call(describe_transactions, request, node=node)).transaction_states:
            if not each.error_code and each.transaction_state in UNDER_WAY:
                found[each.transactional_id] = each.transaction_start_time_ms
    return found


async def describe(client: Client, transactional_id: str) -> TransactionDescription:
    """Raises TransactionalIdNotFound."""
    await _check_any(client)
    request = describe_transactions.DescribeTransactionsRequest(transactional_ids=[transactional_id])

    async def attempt(node: int) -> TransactionDescription:
        found = (await client.call(describe_transactions, request, node=node)).transaction_states[0]
        raise_for(found)
        state, started_ms = found.transaction_state, found.transaction_start_time_ms
        partitions = [
            TopicPartition(topic.topic, index) for topic in found.topics for index in topic.partitions
        ]
        reached = [
            Reached(part, await _first_offset(client, part, found.producer_id)) for part in sorted(partitions)
        ]
        return TransactionDescription(
            transactional_id,
            state,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms,
            started_ms if state in UNDER_WAY and started_ms != NONE else None,
            node,
            tuple(reached),
        )

    return await _at_coordinator(client, transactional_id, attempt)


async def abort(client: Client, transactional_id: str) -> bool:
    """Fence the id's producer and abort what it has open; False, and nothing has changed, if nothing is.

    Raises TransactionalIdNotFound. The producer hears ProducerFenced, and a new one goes on.
    """
    found = await describe(client, transactional_id)
    if not found.is_open:
        return False
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=found.timeout_ms
    )

    async def attempt(node: int) -> None:
        raise_for(await client.call(init_producer_id, request, node=node))

    await _at_coordinator(client, transactional_id, attempt)
    return True


async def _check_any(client: Client) -> None:
    """Raise TransactionalIdNotFound if there never was one: to look for its coordinator makes the topic."""
    if STATE_TOPIC not in (await client.cluster([STATE_TOPIC])).topics:
        raise TransactionalIdNotFound()


async def _first_offset(client: Client, partition: TopicPartition, producer_id: int) -> int | None:
    """Where the producer's open transaction begins; asked for once, since the rest can do without it."""
    wanted = describe_producers.TopicRequest(partition.topic, [partition.partition])
    request = describe_producers.DescribeProducersRequest(topics=[wanted])
    try:
        node = await client.leader(*partition)
        found = (await client.call(describe_producers, request, node=node)).topics[0].partitions[0]
        raise_for(found)
    except ApiError:
        return None
    for each in found.active_producers:
        if each.producer_id == producer_id and each.current_txn_start_offset != NONE:
            return int(each.current_txn_start_offset)
    return None


async def _at_coordinator(client: Client, transactional_id: str, attempt: Callable[[int], Awaitable[T]]) -> T:
    async def once() -> T:
        return await attempt(await client.transaction_coordinator(transactional_id))

    return await client.retry(once)
