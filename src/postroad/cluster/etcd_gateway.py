"""Requests to etcd's JSON gateway over HTTP: which member is asked, for how long, and who is asked next.

All members answer alike. One is asked until it fails; then the next one, in the order of the address. What
is safe to repeat is asked of another member as long as its time lasts. What is not, a transaction, goes to
another one only if no connection was made: once bytes have left, nobody knows what became of it.
Host names are resolved at each connect, since a member that was moved has another address.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import aiohttp
import msgspec

from postroad.cluster.etcd_messages import FINAL_CODES, Refusal, Request, WatchAnswer, Watched, decode
from postroad.errors import CoordinationError, StoreUnavailable

A = TypeVar("A")

CONNECT_S: Final = 0.5
# Below the shortest lease (2 s), all tries together: members that are silent must not cost a node its lease.
KEEP_ALIVE_S: Final = 1.5
READ_S: Final = 3.0
# A commit takes some milliseconds. One that was under way when etcd's leader died is lost there, and its
# answer never comes; elections take about one second.
COMMIT_S: Final = 2.0
TRIES: Final = 3  # a request that may be repeated asks so many members within its time
PAUSE_S: Final = 0.1  # after all members failed
# The first answer to a watch; a member that is stopped accepts connections all the same.
WATCH_OPEN_S: Final = 1.0
# One answer of a watch: etcd sends up to 1,000 revisions in one. A reader who is further behind lists anew.
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024

# A member that has no leader, because it is cut off, then ends the watch instead of being silent for ever.
WATCH_HEADERS: Final = {"Grpc-Metadata-hasleader": "true"}


class Refused(CoordinationError):
    """An answer of etcd that says no, and that another member would give too."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class NoAnswer(CoordinationError):
    """A member gave no answer; whether the request had an effect is unknown."""


class NotSent(NoAnswer):
    """No connection to the member could be made, so the request had no effect."""


class AnswerTooLarge(CoordinationError):
    """An answer of a watch is larger than ANSWER_BYTES_MAX."""


class EtcdGateway:
    """A client of etcd's members. Make it within the loop that will use it."""

    def __init__(self, endpoints: Sequence[str], tls: ssl.SSLContext | None = None) -> None:
        self.endpoints = tuple(endpoints)
        self._scheme = "http" if tls is None else "https"
        self.closed = asyncio.Event()
        self._tries = min(TRIES, len(endpoints))  # with nobody else to ask, one is given all the time
        self._first = 0  # the member that is asked first
        self._calls = 0  # under way
        self._idle = asyncio.Event()
        self._idle.set()
        self._streams: dict[WatchStream, None] = {}
        # No limit: watches keep their connections, and a keep-alive must never wait for one.
        connector = aiohttp.TCPConnector(limit=0, use_dns_cache=False, ssl=True if tls is None else tls)
        self._session = aiohttp.ClientSession(connector=connector)

    # --- requests

    async def ask(self, path: str, request: Request, answer: type[A], within_s: float) -> A:
        """The answer to a request that may be repeated.

        Raises Refused, or StoreUnavailable if no member answered in time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        left_s, tries = within_s, 0
        while True:
            tries += 1
            try:
                return await self._call(path, request, answer, min(within_s / self._tries, left_s))
            except NoAnswer as error:
                reason = error
            if tries % len(self.endpoints) == 0:
                await self.pause(PAUSE_S)
            left_s = deadline - loop.time()
            if left_s <= 0:  # which aiohttp would take for "no limit"
                raise StoreUnavailable(str(reason)) from reason

    async def ask_once(self, path: str, request: Request, answer: type[A], within_s: float) -> A:
        """The answer to a request that must not be sent twice.

        Raises Refused, or StoreUnavailable: the request may have had its effect, or have it later.
        """
        for _ in self.endpoints:
            try:
                return await self._call(path, request, answer, within_s)
            except NotSent as error:
                reason = error
            except NoAnswer as error:
                raise StoreUnavailable(str(error)) from error
        raise StoreUnavailable(str(reason)) from reason

    async def _call(self, path: str, request: Request, answer: type[A], within_s: float) -> A:
        if self.closed.is_set():
            raise StoreUnavailable("The coordination store is closed.")
        self._calls += 1
        self._idle.clear()
        number = self._first
        try:
            return await self._post(self.endpoints[number], path, request, answer, within_s)
        except NoAnswer:
            if self._first == number:  # unless another request has moved on already
                self._first = (number + 1) % len(self.endpoints)
            raise
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _post(self, endpoint: str, path: str, request: Request, answer: type[A], within_s: float) -> A:
        timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=min(CONNECT_S, within_s))
        body = msgspec.json.encode(request)
        try:
            async with self._session.post(
                f"{self._scheme}://{endpoint}/v3/{path}", data=body, timeout=timeout, allow_redirects=False
            ) as response:
                data = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(
                f"etcd at {endpoint} can't be reached: {_reason(error)}. "
                "Is it running, and is cluster.store right?"
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"etcd at {endpoint} did not answer: {_reason(error)}.") from error
        if response.status != 200:
            raise _refusal(endpoint, response.status, data)
        try:
            return decode(data, answer)
        except msgspec.MsgspecError as error:
            raise NoAnswer(f"etcd at {endpoint} failed: {_shown(data)}") from error

    # --- watches

    @asynccontextmanager
    async def watch(self, number: int, request: Request, open_s: float) -> AsyncIterator[WatchStream]:
        """A stream of what a watch brings from one member, by its number, for as long as the block runs.

        Raises NoAnswer if the member does not confirm the watch within `open_s`.
        """
        endpoint = self.endpoints[number % len(self.endpoints)]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        post = self._session.post(
            f"{self._scheme}://{endpoint}/v3/watch",
            data=msgspec.json.encode(request),
            headers=WATCH_HEADERS,
            timeout=timeout,
            allow_redirects=False,
        )
        stream: WatchStream | None = None
        try:
            async with asyncio.timeout(open_s):
                stream = WatchStream(endpoint, await post)
                self._streams[stream] = None
                await stream.confirmed()
            yield stream
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"etcd at {endpoint} does not serve the watch: {_reason(error)}.") from error
        finally:
            if stream is not None:
                self._streams.pop(stream, None)
                stream.abort()

    # --- the end

    async def pause(self, seconds: float) -> None:
        """Wait for so long, or until this is closed."""
        try:
            async with asyncio.timeout(seconds):
                await self.closed.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Wait for requests that are under way, end watches, close connections."""
        self.closed.set()
        for stream in list(self._streams):
            stream.abort()
        await self._idle.wait()
        await self._session.close()


class WatchStream:
    """The answers of one watch, from one member, a line each."""

    def __init__(self, endpoint: str, response: aiohttp.ClientResponse) -> None:
        self.endpoint = endpoint
        self._response = response
        self._buffer = bytearray()
        self._searched = 0  # no line ends before this position of the buffer

    async def confirmed(self) -> None:
        """Wait for the first answer, which says that the watch exists. Raises NoAnswer if it does not."""
        if self._response.status != 200:
            raise NoAnswer(f"etcd at {self.endpoint} refused the watch: {self._response.status}.")
        answer = await self.next()
        if not answer.created or answer.canceled:
            raise NoAnswer(f"etcd at {self.endpoint} refused the watch: {answer.cancel_reason}.")

    async def next(self) -> Watched:
        """The next answer. Raises NoAnswer at the end of the stream, which is never the watch's own."""
        line = await self._line()
        try:
            return decode(line, WatchAnswer).result
        except msgspec.MsgspecError as error:
            raise NoAnswer(f"etcd at {self.endpoint} ended the watch: {_shown(line)}") from error

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > ANSWER_BYTES_MAX:
                raise AnswerTooLarge(f"etcd sends more than {ANSWER_BYTES_MAX} bytes of changes at once.")
            data = await self._response.content.readany()
            if not data:
                raise NoAnswer(f"etcd at {self.endpoint} ended the watch.")
            self._buffer += data
        line = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def abort(self) -> None:
        """Close the connection; whoever waits for `next` gets an aiohttp.ClientError."""
        self._response.close()


def _refusal(endpoint: str, status: int, data: bytes) -> CoordinationError:
    try:
        said = decode(data, Refusal)
    except msgspec.MsgspecError:
        return NoAnswer(
            f"{endpoint} does not answer as etcd's JSON gateway does (HTTP {status}): {_shown(data)}"
        )
    if said.code in FINAL_CODES:
        return Refused(said.code, said.message)
    return NoAnswer(f"etcd at {endpoint} failed: {said.message}.")


def _reason(error: Exception) -> str:
    """What happened, in the system's words where it has some."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"  # asyncio's text repeats the address
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _shown(data: bytes) -> str:
    return repr(data[:200].decode(errors="replace"))
