"""The client for code without an event loop: Django, Flask, scripts, notebooks.

A thread of its own has the loop; calls wait for it. It starts with the first call, and anew in a process
that was forked from one that had it, as servers do that load an application before they fork.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from postroad.workers.client import Client
from postroad.workers.publishing import Headers
from postroad.workers.spans import Span

if TYPE_CHECKING:
    from postroad.workers.receiving import Received, Receiver
    from postroad.workers.streams import Record, Stream

T = TypeVar("T")


class SyncClient:
    """`postroad.Client` whose methods wait: `SyncClient().publish("jobs", {"picture": "cat.jpg"})`.

    The arguments are those of `postroad.Client`. Any thread may call it. Make one and keep it: a module's
    variable will do, for nothing is connected before the first call.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._make: Callable[[], Client] = lambda: Client(*args, **kwargs)
        self._make()  # what is wrong with the arguments is known at once
        self._loop_thread: _LoopThread | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, client: Client) -> SyncClient:
        """Like this client, or app: connected to the same cluster, with the same middleware."""
        made = cls()
        made._make = client.copy
        return made

    def __enter__(self) -> Self:
        self._call(lambda client: client.open())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: str | bytes | None = None,
        delay: Span | None = None,
        at: datetime | None = None,
        expires: Span | None = None,
        id: str | None = None,
        headers: Headers | None = None,
    ) -> None:
        """As `Client.publish`: the message is stored afterwards."""
        self._call(
            lambda client: client.publish(
                topic, value, key=key, delay=delay, at=at, expires=expires, id=id, headers=headers
            )
        )

    def publish_many(self, topic: str, values: Iterable[Any], *, headers: Headers | None = None) -> None:
        """As `Client.publish_many`."""
        self._call(lambda client: client.publish_many(topic, values, headers=headers))

    def subscribe(
        self,
        *topics: str,
        group: str,
        of: type[T] = Any,  # type: ignore[assignment]
        start: str = "earliest",
    ) -> SyncStream[T]:
        """As `Client.subscribe`: `for record in client.subscribe("orders", group="billing"): …`"""
        return SyncStream(self, lambda client: client.subscribe(*topics, group=group, of=of, start=start))

    def receive(
        self,
        subscription: str,
        *,
        topic: str | None = None,
        of: type[T] = Any,  # type: ignore[assignment]
        **options: Any,
    ) -> SyncReceiver[T]:
        """As `Client.receive`: `for message in client.receive("resize", topic="jobs"): … message.accept()`"""
        return SyncReceiver(self, lambda client: client.receive(subscription, topic=topic, of=of, **options))

    def close(self) -> None:
        """What was published is delivered, or has failed. The next call connects again."""
        with self._lock:
            thread, self._loop_thread = self._loop_thread, None
        if thread is not None:
            thread.close()

    def _call(self, work: Any) -> Any:
        return self.thread().call(lambda client: work(client))

    def thread(self) -> _LoopThread:
        """The thread with the loop and the client, of this process."""
        with self._lock:
            if self._loop_thread is None or self._loop_thread.pid != os.getpid():
                self._loop_thread = _LoopThread(self._make())
            return self._loop_thread


class SyncStream(Generic[T]):
    """`for record in stream`."""

    def __init__(self, client: SyncClient, make: Any) -> None:
        self._thread = client.thread()
        self._stream: Stream[T] = self._thread.run(_made(make, self._thread.client))

    def __iter__(self) -> Iterator[Record[T]]:
        return self

    def __next__(self) -> Record[T]:
        try:
            record: Record[T] = self._thread.run(self._stream.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        return record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._thread.run(self._stream.close())


class SyncReceived(Generic[T]):
    """A message that the caller holds, as `Received`. `with message:` accepts it at the end."""

    def __init__(self, message: Received[T], thread: _LoopThread) -> None:
        self._message = message
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    @property
    def value(self) -> T:
        return self._message.value

    def accept(self) -> None:
        self._thread.soon(self._message.accept)

    def retry(self, reason: str = "", *, after: Span | None = None) -> None:
        self._thread.soon(lambda: self._message.retry(reason, after=after))

    def reject(self, reason: str = "") -> None:
        self._thread.soon(lambda: self._message.reject(reason))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        async def end() -> bool:
            return self._message.end(error)

        dealt_with: bool = self._thread.run(end())
        return dealt_with


class SyncReceiver(Generic[T]):
    """`for message in receiver`, or `receiver.next(timeout_s)`."""

    def __init__(self, client: SyncClient, make: Any) -> None:
        self._thread = client.thread()
        self._receiver: Receiver[T] = self._thread.run(_made(make, self._thread.client))

    def __iter__(self) -> Iterator[SyncReceived[T]]:
        while (message := self.next(None)) is not None:
            yield message

    def next(self, timeout_s: float | None = 0) -> SyncReceived[T] | None:
        """The next message; None if none came in time."""
        message = self._thread.run(self._receiver.next(timeout_s))
        return None if message is None else SyncReceived(message, self._thread)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._thread.run(self._receiver.close())


async def _made(make: Any, client: Client) -> Any:
    return make(client)


class _LoopThread:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="postroad", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def call(self, work: Any) -> Any:
        return self.run(work(self.client))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Wait for it, in the calling thread. Ctrl-C cancels it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("this would wait for itself: in async code use postroad.Client")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def soon(self, call: Any) -> None:
        self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Once; a thread that a fork did not take along needs nothing."""
        atexit.unregister(self.close)
        if self.pid != os.getpid() or self._loop.is_closed():
            return
        try:
            self.run(self.client.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
