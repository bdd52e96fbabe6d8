"""Runs a worker's function for one message, and says what becomes of the message.

How the function wants to be called is looked up once: its first parameter is the job, of the annotated
type; a parameter that is annotated `postroad.Message` gets the message. A plain function runs in a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import typing
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from postroad.workers.errors import Undecodable
from postroad.workers.message import Message
from postroad.workers.middleware import Middleware
from postroad.workers.outcomes import (
    ACCEPTED,
    AcceptedWith,
    Reject,
    Rejection,
    Release,
    Retry,
    Verdict,
    explain,
    shortened,
)
from postroad.workers.payloads import Decode, decoder

if TYPE_CHECKING:
    from postroad.client.share_message import ShareMessage
    from postroad.workers.publishing import Outgoing
    from postroad.workers.worker import Worker

log = logging.getLogger("postroad.worker")

Publish = Callable[[Sequence["Outgoing"]], Awaitable[None]]


class Signature:
    """How a worker's function is called. TypeError if it can't be with one job."""

    def __init__(self, function: Callable[..., Any]) -> None:
        called = function if inspect.isroutine(function) else type(function).__call__
        hints = _hints(called)
        parameters = list(inspect.signature(function).parameters.values())
        positional = [
            each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        self.message = next((each.name for each in parameters if _is_message(hints.get(each.name))), None)
        jobs = [
            each
            for each in positional
            if each.name != self.message and (each.default is each.empty or self.message is None)
        ]
        self.job_type: Any = hints.get(jobs[0].name, Any) if jobs else bytes
        self.takes_job = bool(jobs)
        self.takes_message_first = bool(positional) and positional[0].name == self.message
        missing = [
            each.name
            for each in parameters
            if each.default is each.empty
            and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            and each.name != self.message
            and each not in jobs[:1]
        ]
        if missing or not (self.takes_job or self.message):
            name = getattr(function, "__qualname__", function)
            lack = f"nobody gives it {missing[0]!r}" if missing else "it takes neither"
            raise TypeError(
                f"{name} is called with a job and, where a parameter is annotated postroad.Message, with the "
                f"message; {lack}"
            )
        self.is_async = inspect.iscoroutinefunction(called)


class Handler:
    """`handle` is what to call with each message. It raises nothing but CancelledError."""

    def __init__(self, worker: Worker, middleware: Sequence[Middleware], publish: Publish) -> None:
        self.handle: Callable[[ShareMessage], Awaitable[Verdict]]
        self._worker = worker
        self._signature = signature = Signature(worker.function)
        self._decode: Decode = decoder(signature.job_type)
        self._publish = publish
        self._middleware = [each.work for each in middleware if type(each).work is not Middleware.work]
        self._timeout_s = None if worker.timeout_ms is None else worker.timeout_ms / 1000
        self._threads: ThreadPoolExecutor | None = None
        is_plain = signature.is_async and not self._middleware and self._timeout_s is None
        self.handle = self._handle_plain if is_plain and signature.message is None else self._handle
        if not signature.is_async:
            self._threads = ThreadPoolExecutor(
                worker.concurrency, thread_name_prefix=f"worker {worker.subscription}"
            )

    def close(self) -> None:
        """Threads that still run are left to themselves."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _handle_plain(self, delivered: ShareMessage) -> Verdict:
        """The short way of `_handle`: nothing but the job is asked for."""
        try:
            await self._worker.function(self._decode(delivered.value))
        except BaseException as error:
            return self._verdict(error, delivered)
        return ACCEPTED

    async def _handle(self, delivered: ShareMessage) -> Verdict:
        message = Message(delivered, self._worker.subscription)
        try:
            job = self._decode(delivered.value) if self._signature.takes_job else None
            async with asyncio.timeout(self._timeout_s) as limit:
                await self._through(0, message, job)
            if message.outgoing and self._worker.transaction:
                return AcceptedWith(message.outgoing)
            if message.outgoing:
                await self._publish(message.outgoing)
        except TimeoutError as error:
            if limit.expired():
                return self._late(message)
            return self._verdict(error, delivered)
        except BaseException as error:
            return self._verdict(error, delivered)
        return ACCEPTED

    async def _through(self, depth: int, message: Message, job: Any) -> None:
        """Through the middleware from `depth` on, to the function."""
        if depth == len(self._middleware):
            await self._call(message, job)
            return

        async def rest() -> None:
            await self._through(depth + 1, message, job)

        await self._middleware[depth](message, rest)

    async def _call(self, message: Message, job: Any) -> None:
        signature = self._signature
        args: tuple[Any, ...] = (job,) if signature.takes_job else ()
        kwargs: dict[str, Any] = {}
        if signature.takes_message_first:
            args = (message, *args)
        elif signature.message is not None:
            kwargs[signature.message] = message
        if self._threads is None:
            await self._worker.function(*args, **kwargs)
            return
        call = partial(contextvars.copy_context().run, self._worker.function, *args, **kwargs)
        await asyncio.get_running_loop().run_in_executor(self._threads, call)

    # --- what it means -------------------------------------------------------------------------

    def _late(self, message: Message) -> Verdict:
        reason = f"TimeoutError: not done within {self._timeout_s:g} s"
        log.error("%s: %s at attempt %d: %s", self._worker.name, message.id, message.attempt, reason)
        return Release(None, reason)

    def _verdict(self, error: BaseException, delivered: ShareMessage) -> Verdict:
        """What an error says of the message. Raises it if it is no affair of the message."""
        worker = self._worker
        where = f"{delivered.topic}/{delivered.partition}/{delivered.offset}"
        if isinstance(error, Retry):
            log.info("%s: %s comes again: %s", worker.name, where, error.reason)
            return Release(error.after_ms, shortened(error.reason))
        if isinstance(error, Reject):
            log.warning("%s: %s is rejected: %s", worker.name, where, error.reason)
            return Rejection(shortened(error.reason))
        if isinstance(error, Undecodable):
            log.warning("%s: %s is rejected: %s", worker.name, where, error)
            return Rejection(shortened(f"can't be decoded: {error}"))
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise error
        elif not isinstance(error, Exception):
            raise error
        attempt = delivered.delivery_count
        log.error("%s: %s failed at attempt %d", worker.name, where, attempt, exc_info=error)
        return Release(None, explain(error))


def _hints(function: Any) -> dict[str, Any]:
    """The annotations. A name that is not there is told with the function's own."""
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        name = getattr(function, "__qualname__", function)
        raise TypeError(f"{name}: an annotation can't be resolved: {error}") from None


def _is_message(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Message)
