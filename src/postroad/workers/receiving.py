"""Messages of a subscription for code that asks for them, instead of being called with them.

It is a `Runner` whose jobs are to hand a message out and to wait for what the caller says of it: so locks are
renewed, and what is said goes in few requests.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from postroad.workers.errors import Undecodable
from postroad.workers.message import Message
from postroad.workers.outcomes import ACCEPTED, Reject, Rejection, Release, Retry, Verdict, explain, shortened
from postroad.workers.payloads import Decode, decoder
from postroad.workers.runner import Runner
from postroad.workers.worker import Worker

if TYPE_CHECKING:
    from postroad.client.share_message import ShareMessage
    from postroad.workers.client import Client
    from postroad.workers.spans import Span

T = TypeVar("T")


class Received(Message, Generic[T]):
    """A message that the caller holds until it says what becomes of it. The first word counts.

    `async with message:` accepts it at the end, and does with what the block raises as a worker does.
    """

    __slots__ = ("_decode", "_verdict")

    def __init__(
        self, delivered: ShareMessage, subscription: str, decode: Decode, verdict: asyncio.Future[Verdict]
    ) -> None:
        super().__init__(delivered, subscription)
        self._decode = decode
        self._verdict = verdict

    @property
    def value(self) -> T:
        """`postroad.Undecodable` if the payload is not of the type that was asked for."""
        found: T = self._decode(self._delivered.value)
        return found

    def accept(self) -> None:
        """It is done with. The node hears of it in a moment."""
        self._say(ACCEPTED)

    def retry(self, reason: str = "", *, after: Span | None = None) -> None:
        """It comes again, after the subscription's backoff or `after`."""
        self._say(Release(Retry(reason, after=after).after_ms, shortened(reason)))

    def reject(self, reason: str = "") -> None:
        """It becomes a dead letter, with this reason."""
        self._say(Rejection(shortened(reason)))

    def _say(self, verdict: Verdict) -> None:
        if not self._verdict.done():
            self._verdict.set_result(verdict)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.end(error)

    def end(self, error: BaseException | None) -> bool:
        """What becomes of it when a block has raised this, or nothing; whether the error is dealt with."""
        if error is None:
            self.accept()
        elif isinstance(error, Retry):
            self._say(Release(error.after_ms, shortened(error.reason)))
        elif isinstance(error, Reject):
            self.reject(error.reason)
        elif isinstance(error, Undecodable):
            self.reject(f"can't be decoded: {error}")
        else:
            self._say(Release(None, explain(error)))
            return False
        return error is not None


class Receiver(Generic[T]):
    """`async for message in receiver`, or `await receiver.next(timeout)`. Made by `Client.receive`."""

    def __init__(self, client: Client, worker: Worker, of: Any) -> None:
        self._client = client
        self._worker = worker
        self._decode = decoder(of)
        self._ready: asyncio.Queue[Received[T]] = asyncio.Queue()
        self._runner: Runner | None = None
        self._running: asyncio.Task[None] | None = None
        self._close: Callable[[], Any] | None = None
        self._open: set[asyncio.Future[Verdict]] = set()

    async def __aenter__(self) -> Self:
        await self._join()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Received[T]:
        message = await self.next(None)
        if message is None:
            raise StopAsyncIteration
        return message

    async def next(self, timeout_s: float | None = 0) -> Received[T] | None:
        """The next message; None if none came in time, or after `close`. PostroadError if none will come."""
        running = self._running or await self._join()
        if self._ready.empty():
            waiting = asyncio.ensure_future(self._ready.get())
            done, _ = await asyncio.wait(
                {waiting, running}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if waiting in done:
                return waiting.result()
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                return await waiting  # it came at the last moment
            if running in done:
                running.result()
            return None
        return self._ready.get_nowait()

    async def close(self) -> None:
        """What was said is said to the node, what is held comes again, and the member leaves."""
        running, self._running = self._running, None
        if self._runner is None or running is None:
            return
        for verdict in list(self._open):
            if not verdict.done():
                verdict.set_result(Release(0))
        self._runner.stop()
        try:
            await running
        finally:
            if self._close is not None:
                await self._close()

    async def _hand_out(self, delivered: ShareMessage) -> Verdict:
        """Hand the message out; what the caller says of it."""
        verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._open.add(verdict)
        try:
            self._ready.put_nowait(Received(delivered, self._worker.subscription, self._decode, verdict))
            return await verdict
        finally:
            self._open.discard(verdict)

    async def _join(self) -> asyncio.Task[None]:
        source = await self._client.join(self._worker)
        self._close = source.close
        self._runner = Runner(self._worker, source, self._hand_out)
        self._running = asyncio.create_task(self._runner.run(), name=f"receive {self._worker.subscription}")
        self._client.opened.append(self)
        return self._running
