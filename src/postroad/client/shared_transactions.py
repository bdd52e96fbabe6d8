"""Several producers write in one transaction, which one of them, or somebody else, ends for all.

    run = SharedRun(client, "nightly", "run-1", batch=7)
    producer = await run.enter()                        # anywhere, as often as there are tasks
    await producer.send(TopicPartition("results", 0), [b"value"])
    await run.commit([producer.identity])               # what others wrote is aborted

A batch has a number and is committed once: `enter` returns None for one that was. Whoever enters with another
run of the same transactional id aborts the run before. ProducerFenced says that this has happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from postroad.client.client import Client
from postroad.client.transactions import TIMEOUT_MS, TransactionalProducer
from postroad.errors import UnsupportedVersion, by_code
from postroad.wire import shared_transactions as codec

FEATURE: Final = "postroad.shared.transactions"
NOT_HERE: Final = "This cluster has no transactions that several producers write in."


class SharedRun:
    """One try to write the batch."""

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        run: str,
        batch: int,
        timeout_ms: int = TIMEOUT_MS,
        call_s: float | None = None,
    ) -> None:
        self._client = client
        self._id = transactional_id
        self._run = run
        self._batch = batch
        self._timeout_ms = timeout_ms
        self._call_s = client.timeout_s if call_s is None else call_s

    async def enter(self) -> TransactionalProducer | None:
        """A producer of the transaction, which is neither committed nor aborted by it; None: the batch was
        committed. Raises UnsupportedVersion, ProducerFenced, InvalidTransactionState after a later batch."""
        answer = await self._ask(codec.Enter(self._id, self._run, self._batch, self._timeout_ms))
        if answer.is_done:
            return None
        return TransactionalProducer.entered(
            self._client, self._id, answer.producer_id, answer.producer_epoch, call_s=self._call_s
        )

    async def commit(self, kept: Sequence[tuple[int, int]]) -> None:
        """What these producers wrote is in effect, what others wrote in the run never will be."""
        await self._ask(codec.Finish(self._id, self._run, self._batch, list(kept)))

    async def abort(self) -> None:
        """Nothing of it is in effect, unless it was committed before."""
        await self._ask(codec.Finish(self._id, self._run, self._batch))

    async def _ask(self, order: codec.AnyOrder) -> Any:
        async def attempt() -> Any:
            node = await self._client.transaction_coordinator(self._id)
            connection = await self._client.connection(node)
            if FEATURE not in connection.features:
                raise UnsupportedVersion(NOT_HERE)
            answer = await connection.call(codec, order, self._call_s, codec.MAX_VERSION)
            if answer.error_code:
                raise by_code(answer.error_code, answer.error_message)
            return answer

        return await self._client.retry(attempt)
