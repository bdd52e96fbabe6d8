"""Sends a task's batches while the next ones are made.

One batch of a partition is under way at a time, those of all partitions together. Batches are encoded while
the ones before are on their way; at most `ROUNDS_AHEAD` wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

from postroad.spark.router import TopicPartition
from postroad.spark.storing import Outgoing, Store

ROUNDS_AHEAD: Final = 2


class Sender:
    """`with Sender(store) as sender:` then `send`; when the block ends without an error all is stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "postroad-sink")
        self._under_way: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._wait(0)
        finally:
            self._thread.shutdown(cancel_futures=True)

    def send(self, batches: Mapping[TopicPartition, Outgoing]) -> None:
        """Returns when few enough are under way; raises what became of those before."""
        self._wait(ROUNDS_AHEAD - 1)
        self._under_way.append(self._thread.submit(self._store.put, batches))

    def _wait(self, most: int) -> None:
        while len(self._under_way) > most:
            self._under_way.popleft().result()
