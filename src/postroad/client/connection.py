"""One connection to one node: requests pipelined, answers matched, versions agreed.

Rules that hold:
1. Answers come in the order of the requests (Kafka promises it), so a queue holds who waits.
2. An answer that does not fit, or one that is late, ends the connection: whatever else was under
   way then fails with NetworkException, because nobody can say any more whether it was done.
3. A caller that gave up leaves its place in the queue; its answer is read and dropped.
4. At most IN_FLIGHT_MAX calls wait for answers; a full socket buffer makes callers wait too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, NamedTuple, cast

from postroad import __version__
from postroad.errors import (
    BrokerNotAvailable,
    NetworkException,
    PostroadError,
    ProtocolError,
    RequestTimedOut,
    UnsupportedVersion,
    by_code,
)
from postroad.wire.framing import FrameBuffer, skip_tags
from postroad.wire.messages import api_versions

IN_FLIGHT_MAX: Final = 64
FRAME_BYTES_MAX: Final = 256 * 1024 * 1024  # far above a fetch of 50 MiB; memory follows what came
CONNECT_TIMEOUT_S: Final = 5.0
ANY_VERSION: Final = 0x7FFF
# Produce, Fetch, OffsetCommit, OffsetFetch: later versions name topics by id only. Names are enough
# for most, and keep answers easy to read.
NAMES_UNTIL: Final = {0: 12, 1: 12, 8: 9, 9: 9}

_REQUEST: Final = Struct(">ihhih")  # length, key, version, correlation, bytes of the client id
_CORRELATION: Final = Struct(">i")
_ERROR: Final = Struct(">h")


class _Waiter(NamedTuple):
    correlation: int
    api: Any
    version: int
    answer: asyncio.Future[Any]


async def open_connection(
    host: str, port: int, client_id: str, timeout_s: float = CONNECT_TIMEOUT_S
) -> Connection:
    """Connected, with the versions agreed on. BrokerNotAvailable says why where that can't be had."""
    address = f"{host}:{port}"
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(lambda: Connection(address, client_id), host, port)
    except ConnectionRefusedError:
        raise BrokerNotAvailable(f"nothing listens on {address}") from None
    except TimeoutError:
        raise BrokerNotAvailable(f"{address} does not take connections ({timeout_s:g} s)") from None
    except OSError as error:
        raise BrokerNotAvailable(f"can't connect to {address}: {error.strerror or error}") from None
    try:
        await connection.agree_on_versions(timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


class Connection(asyncio.BufferedProtocol):
    """Made by `open_connection`; ended by `close`, by the peer, or by rule 2."""

    def __init__(self, address: str, client_id: str) -> None:
        self.address = address
        self.versions: Mapping[int, tuple[int, int]] = {}
        self._client_id = client_id.encode()
        self._frames = FrameBuffer(FRAME_BYTES_MAX)
        self._waiting: deque[_Waiter] = deque()
        self._correlation = 0
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._room = asyncio.Event()
        self._room.set()
        self._ended: PostroadError | None = None

    @property
    def is_open(self) -> bool:
        return self._ended is None

    def version(self, api: Any) -> int:
        """The highest version that both sides know; UnsupportedVersion if there is none."""
        return common_version(self.address, self.versions, api)

    def version_by_id(self, api: Any) -> int:
        """As `version`, for a request that has its topics' ids beside their names."""
        return common_version(self.address, self.versions, api, api.MAX_VERSION)

    async def call(self, api: Any, body: Any, timeout_s: float, version: int | None = None) -> Any:
        """The answer to one request. RequestTimedOut (rule 2 applies) or NetworkException."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._room.is_set():
                    await self._room.wait()
                return await self._send(api, body, version)
        except TimeoutError:
            late = RequestTimedOut(f"{self.address} did not answer within {timeout_s:g} s.")
            self._end(late)
            raise late from None

    async def post(self, api: Any, body: Any, timeout_s: float) -> None:
        """Write a request that is never answered (Produce with acks=0)."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._room.wait()
        except TimeoutError:
            raise RequestTimedOut(f"{self.address} took no bytes within {timeout_s:g} s.") from None
        self._write(api, body, self.version(api))

    async def agree_on_versions(self, timeout_s: float) -> None:
        """The first request of a connection. A node that knows no such version answers in version 0."""
        request = api_versions.ApiVersionsRequest(
            client_software_name="postroad", client_software_version=__version__
        )
        version = api_versions.MAX_VERSION
        answer = await self.call(api_versions, request, timeout_s, version)
        if answer.error_code == UnsupportedVersion.code:
            answer = await self.call(api_versions, request, timeout_s, 0)
        if answer.error_code:
            raise by_code(answer.error_code)
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def close(self) -> None:
        self._end(NetworkException(f"The connection to {self.address} was closed."))

    # --- writing -------------------------------------------------------------------------------

    def _send(self, api: Any, body: Any, version: int | None) -> asyncio.Future[Any]:
        version = self.version(api) if version is None else version
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiter(self._write(api, body, version), api, version, answer))
        self._set_room()
        return answer

    def _write(self, api: Any, body: Any, version: int) -> int:
        if self._ended is not None or self._transport is None:
            raise NetworkException(f"The connection to {self.address} has ended.") from self._ended
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        self._transport.writelines(frame_request(api, version, self._correlation, self._client_id, body))
        return self._correlation

    def _set_room(self) -> None:
        if self._is_paused or len(self._waiting) >= IN_FLIGHT_MAX:
            self._room.clear()
        else:
            self._room.set()

    # --- what the event loop calls -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(NetworkException(f"{self.address} ended the connection."))

    def pause_writing(self) -> None:
        self._is_paused = True
        self._set_room()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._set_room()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.take(nbytes):
                self._answer(frame)
            if self._frames.wrong:
                raise ProtocolError(self._wrong())
        except ProtocolError as error:
            self._end(error)
        self._set_room()

    def _wrong(self) -> str:
        if foreign := self._frames.foreign:
            return f"{self.address} speaks {foreign}, not the Kafka protocol: name a node's Kafka port."
        return f"{self.address}: {self._frames.wrong}."

    # --- reading -------------------------------------------------------------------------------

    def _answer(self, frame: memoryview) -> None:
        if not self._waiting or len(frame) < _CORRELATION.size:
            raise ProtocolError(f"{self.address} answered what nobody asked.")
        correlation, api, version, answer = self._waiting[0]
        if _CORRELATION.unpack_from(frame)[0] != correlation:
            raise ProtocolError(f"{self.address} answered out of order.")
        if answer.done():  # rule 3
            self._waiting.popleft()
            return
        body = decode_answer(api, version, memoryview(bytes(frame)))  # a copy: records outlive the buffer
        self._waiting.popleft()
        answer.set_result(body)

    def _end(self, reason: PostroadError) -> None:
        """Fail all who wait; the one whose answer could not be read gets the reason itself."""
        if self._ended is not None:
            return
        self._ended = reason
        self._room.set()
        if self._transport is not None:
            self._transport.abort()
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.answer.done():
                waiter.answer.set_exception(reason)
                reason = NetworkException(f"The connection to {self.address} ended: {reason}")


# --- bytes, without I/O ------------------------------------------------------------------------


def common_version(
    address: str, offered: Mapping[int, tuple[int, int]], api: Any, highest_known: int | None = None
) -> int:
    """The highest version of an API that both sides know; UnsupportedVersion if there is none. Unless it is
    said which one the caller knows, that is the last one with names of topics."""
    if api.KEY not in offered:
        raise UnsupportedVersion(f"{address} does not offer {api.NAME}.")
    lowest, highest = offered[api.KEY]
    known = highest_known or min(api.MAX_VERSION, NAMES_UNTIL.get(api.KEY, ANY_VERSION))
    version = min(highest, known)
    if version < max(lowest, api.MIN_VERSION):
        raise UnsupportedVersion(
            f"{api.NAME}: {address} offers versions {lowest} to {highest}, "
            f"this client knows {api.MIN_VERSION} to {known}."
        )
    return int(version)


def frame_request(
    api: Any, version: int, correlation: int, client_id: bytes, body: Any
) -> tuple[bytes, bytes, bytes, bytes]:
    """The parts of a frame, to be written one after the other."""
    tags = b"\0" if version >= api.FLEXIBLE_FROM else b""
    payload = api.encode_request(body, version)
    length = _REQUEST.size - 4 + len(client_id) + len(tags) + len(payload)
    return _REQUEST.pack(length, api.KEY, version, correlation, len(client_id)), client_id, tags, payload


def decode_answer(api: Any, version: int, frame: memoryview) -> Any:
    """The body of an answer, after its correlation id. Records in it are views of the frame."""
    at = _CORRELATION.size
    if api is api_versions:
        # Its header is never flexible, and a version that the node doesn't know is answered as 0.
        if len(frame) >= 6 and _ERROR.unpack_from(frame, at)[0] == UnsupportedVersion.code:
            version = 0
    elif version >= api.FLEXIBLE_FROM:
        at = skip_tags(frame, at)
    return api.decode_response(frame[at:], version)
