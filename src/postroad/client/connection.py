"""One connection to one node: requests pipelined, answers matched, versions agreed.

Rules that hold:
1. Answers come in the order of the requests (Kafka promises it), so a queue holds who waits.
2. An answer that does not fit, or one that is late, ends the connection: whatever else was under
   way then fails with NetworkException, because nobody can say any more whether it was done.
3. A caller that gave up leaves its place in the queue; its answer is read and dropped.
4. At most IN_FLIGHT_MAX calls wait for answers. While more than UNSENT_BYTES_HIGH wait to be sent, callers
   wait, too.
5. A request goes out at once if no other one is under way. Otherwise it goes out at the end of the loop's
   turn, with all that was written by then: a send costs as much as making a small request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from struct import Struct
from typing import Any, Final, NamedTuple

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
from postroad.system.stream import Connect, Stream
from postroad.wire.framing import FrameBuffer, skip_tags
from postroad.wire.messages import api_versions

IN_FLIGHT_MAX: Final = 64
FRAME_BYTES_MAX: Final = 256 * 1024 * 1024  # far above a fetch of 50 MiB; memory follows what came
CONNECT_TIMEOUT_S: Final = 5.0
UNSENT_BYTES_HIGH: Final = 64 * 1024  # here callers begin to wait
UNSENT_BYTES_LOW: Final = 16 * 1024  # and here they go on
JOINED_BYTES_MAX: Final = 32 * 1024  # beyond it pieces are handed to the kernel as they are, not copied
PIECES_MAX: Final = 256  # in one send: below the kernel's IOV_MAX of 1024
RECEIVES_MAX: Final = 8  # in one turn, of a large answer; then others get theirs
RENEW_AT: Final = 0.8  # of its time a session is renewed: then there is time for a second try
ANY_VERSION: Final = 0x7FFF
# Produce, Fetch, OffsetCommit, OffsetFetch: later versions name topics by id only. Names are enough
# for most, and keep answers easy to read.
NAMES_UNTIL: Final = {0: 12, 1: 12, 8: 9, 9: 9}

_REQUEST: Final = Struct(">ihhih")  # length, key, version, correlation, bytes of the client id
_CORRELATION: Final = Struct(">i")
_ERROR: Final = Struct(">h")


# Logs in over a connection within so many seconds; the session's length in milliseconds, 0: without an end.
LogIn = Callable[["Connection", float], Awaitable[int]]


class _Waiter(NamedTuple):
    correlation: int
    api: Any
    version: int
    answer: asyncio.Future[Any]


async def open_connection(
    connect: Connect,
    host: str,
    port: int,
    client_id: str,
    timeout_s: float = CONNECT_TIMEOUT_S,
    log_in: LogIn | None = None,
) -> Connection:
    """Connected, with the versions agreed on and logged in. BrokerNotAvailable says why where that can't
    be had;
    who is not let in hears SaslAuthenticationFailed."""
    address = f"{host}:{port}"
    try:
        async with asyncio.timeout(timeout_s):
            stream = await connect(host, port)
    except ConnectionRefusedError:
        raise BrokerNotAvailable(f"nothing listens on {address}") from None
    except TimeoutError:
        raise BrokerNotAvailable(f"{address} does not take connections ({timeout_s:g} s)") from None
    except OSError as error:
        raise BrokerNotAvailable(f"can't connect to {address}: {error.strerror or error}") from None
    connection = Connection(stream, address, client_id)
    try:
        await connection.agree_on_versions(timeout_s)
        if log_in is not None:
            await connection.log_in(log_in, timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


class Connection:
    """Made by `open_connection`; ended by `close`, by the peer, or by rule 2."""

    def __init__(self, stream: Stream, address: str, client_id: str) -> None:
        self.address = address
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.features: Mapping[str, int] = {}  # what all nodes of the cluster have, and its version
        self._client_id = client_id.encode()
        self._stream = stream
        self._fd = stream.fileno()
        self._loop = asyncio.get_running_loop()
        self._frames = FrameBuffer(FRAME_BYTES_MAX)
        self._waiting: deque[_Waiter] = deque()
        self._correlation = 0
        self._unsent: deque[bytes | memoryview] = deque()  # none of them empty
        self._unsent_bytes = 0
        self._will_send = False  # at the end of this turn, or when the loop says that there is room
        self._is_paused = False
        self._room = asyncio.Event()
        self._room.set()
        self._ended: PostroadError | None = None
        self._renewal: asyncio.Task[None] | None = None
        stream.start_reading(self._loop, self._receive)

    @property
    def is_open(self) -> bool:
        return self._ended is None

    @property
    def oldest_request(self) -> int | None:
        """The number of the request that has waited longest for its answer; None if none does."""
        return self._waiting[0].correlation if self._waiting else None

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
        self._set_room()

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
        self.features = {each.name: each.max_version_level for each in answer.finalized_features}

    async def log_in(self, log_in: LogIn, timeout_s: float) -> None:
        """Log in, and again before the session ends (KIP-368), for as long as the connection is open."""
        lifetime_ms = await log_in(self, timeout_s)
        if lifetime_ms:
            self._renewal = self._loop.create_task(self._renew(log_in, timeout_s, lifetime_ms))

    async def _renew(self, log_in: LogIn, timeout_s: float, lifetime_ms: int) -> None:
        try:
            while lifetime_ms:
                await asyncio.sleep(lifetime_ms * RENEW_AT / 1000)
                lifetime_ms = await log_in(self, timeout_s)
        except PostroadError as error:
            self._end(error)

    def detach(self) -> Stream:
        """The stream, for somebody else to go on with; nothing is under way on it."""
        assert not self._waiting
        assert self._renewal is None
        self._ended = NetworkException(f"The connection to {self.address} was handed over.")
        self._loop.remove_reader(self._fd)
        return self._stream

    def close(self) -> None:
        self._end(NetworkException(f"The connection to {self.address} was closed."))

    def give_up(self) -> None:
        """The node is gone, and will not say so."""
        self._end(NetworkException(f"{self.address} is silent, and no longer in the cluster."))

    # --- writing -------------------------------------------------------------------------------

    def _send(self, api: Any, body: Any, version: int | None) -> asyncio.Future[Any]:
        version = self.version(api) if version is None else version
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append(_Waiter(self._write(api, body, version), api, version, answer))
        self._set_room()
        return answer

    def _write(self, api: Any, body: Any, version: int) -> int:
        self._check_open()
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        *head, payload = frame_request(api, version, self._correlation, self._client_id, body)
        if len(payload) <= JOINED_BYTES_MAX:
            self._add_unsent(b"".join((*head, payload)))
        else:
            self._add_unsent(b"".join(head))
            self._add_unsent(payload)
        if not self._will_send:
            self._send_now_or_later()
        self._set_paused()
        return self._correlation

    def _send_now_or_later(self) -> None:
        """Rule 5. What is too large to be copied gains nothing by waiting for more."""
        if self._waiting and self._unsent_bytes <= JOINED_BYTES_MAX:
            self._will_send = True
            self._loop.call_soon(self._send_at_end_of_turn)
        else:
            self._send_unsent()
            self._check_open()

    def _check_open(self) -> None:
        if self._ended is not None:
            raise NetworkException(f"The connection to {self.address} has ended.") from self._ended

    def _set_paused(self) -> None:
        self._is_paused = self._unsent_bytes > (UNSENT_BYTES_LOW if self._is_paused else UNSENT_BYTES_HIGH)

    def _set_room(self) -> None:
        if self._is_paused or len(self._waiting) >= IN_FLIGHT_MAX:
            self._room.clear()
        else:
            self._room.set()

    def _add_unsent(self, piece: bytes) -> None:
        self._unsent.append(piece)
        self._unsent_bytes += len(piece)

    def _send_at_end_of_turn(self) -> None:
        self._will_send = False
        self._send_unsent()
        self._set_paused()
        self._set_room()

    def _send_unsent(self) -> None:
        """Send until everything is out or the kernel's buffer is full; then the loop says when to go on."""
        try:
            while self._unsent:
                self._drop_sent(self._send_some())
        except (BlockingIOError, InterruptedError):
            if not self._will_send:
                self._will_send = True
                self._loop.add_writer(self._fd, self._send_on)
        except OSError:
            self._lose()

    def _send_on(self) -> None:
        """The kernel's buffer has room again."""
        self._send_unsent()
        if not self._unsent and self._ended is None:
            self._will_send = False
            self._loop.remove_writer(self._fd)
        self._set_paused()
        self._set_room()

    def _send_some(self) -> int:
        unsent = self._unsent
        if len(unsent) == 1:
            return self._stream.send(unsent[0])
        if self._unsent_bytes > JOINED_BYTES_MAX:
            return self._stream.send_pieces(list(islice(unsent, PIECES_MAX)))
        joined = b"".join(unsent)
        unsent.clear()
        unsent.append(joined)
        return self._stream.send(joined)

    def _drop_sent(self, sent: int) -> None:
        self._unsent_bytes -= sent
        while sent:
            piece = self._unsent.popleft()
            if sent < len(piece):
                self._unsent.appendleft(memoryview(piece)[sent:])
                return
            sent -= len(piece)

    # --- reading -------------------------------------------------------------------------------

    def _receive(self) -> None:
        """A large answer fills the space that there is for it, and then there is more space."""
        for _ in range(RECEIVES_MAX):
            space = self._frames.space()
            try:
                received = self._stream.receive_into(space)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                received = 0
            if not received:
                self._lose()
                return
            self._take(received)
            if received < len(space) or self._ended is not None:
                return

    def _take(self, received: int) -> None:
        try:
            for frame in self._frames.take(received):
                self._answer(frame)
            if self._frames.wrong:
                raise ProtocolError(self._wrong())
        except ProtocolError as error:
            self._end(error)
        self._set_room()

    def _wrong(self) -> str:
        if self._frames.foreign == "TLS":
            return f"{self.address} speaks TLS: write tls://{self.address}, and ?ca=FILE where it is needed."
        if foreign := self._frames.foreign:
            return f"{self.address} speaks {foreign}, not the Kafka protocol: name a node's Kafka port."
        return f"{self.address}: {self._frames.wrong}."

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

    # --- its end -------------------------------------------------------------------------------

    def _lose(self) -> None:
        self._end(NetworkException(f"{self.address} ended the connection."))

    def _end(self, reason: PostroadError) -> None:
        """Fail all who wait; the one whose answer could not be read gets the reason itself."""
        if self._ended is not None:
            return
        self._ended = reason
        if self._renewal is not None and self._renewal is not asyncio.current_task():
            self._renewal.cancel()
        self._room.set()
        self._stream.stop_reading(self._loop)
        self._loop.remove_writer(self._fd)
        self._stream.close()
        self._unsent.clear()
        self._unsent_bytes = 0
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
