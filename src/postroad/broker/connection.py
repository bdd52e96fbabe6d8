"""One client's connection: bytes to frames, answers back in the order of the requests.

The stream is read and written here directly, without a transport: one receive, all whole frames
handled, one send at the end of the turn (docs/adr/0004-raw-sockets.md has the figures). Requests
may be answered out of order inside (a long poll waits while a produce is done), but leave in order,
as the protocol demands.

Bounds: a frame (`frame_bytes_max`), requests in flight, bytes waiting to be sent. At a bound the
connection stops reading until its peer has taken what is there: back-pressure, no growth. Records
from files don't count: they go out by sendfile and are in nobody's memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

from postroad.broker.muting import MUTED, Muting
from postroad.broker.turn import Turn
from postroad.config.listeners import DEFAULT_NAME
from postroad.errors import ProtocolError
from postroad.log.partition_log import Slice
from postroad.metrics.instruments import Distribution
from postroad.security.principals import ANONYMOUS, Principal
from postroad.system.clock import stopwatch_ns
from postroad.system.stream import MSG_MORE, Stream
from postroad.wire import fetch, produce
from postroad.wire.framing import FrameBuffer, response_head

if TYPE_CHECKING:
    from postroad.broker.access import Guard
    from postroad.broker.login import Login
    from postroad.broker.quotas import Limits

REQUESTS_IN_FLIGHT_MAX: Final = 1024  # clients pipeline 5 to 100; more is a flood
# Looking ten times costs what one way through the loop costs; on two cores it is worth a quarter more
# requests of a client that sends one by one. With other clients around it would be at their expense.
LOOKS_AGAIN: Final = 10
ROUNDS_MAX: Final = 8  # then timers and others get their turn: within half a millisecond
CHATTY_BYTES_MAX: Final = 16 * 1024  # who sends more at once is not waited for
JOINED_BYTES_MAX: Final = 32 * 1024  # beyond it pieces are handed to the kernel one by one, not copied
GATHER_MAX: Final = 256  # buffers in one send: below the kernel's IOV_MAX of 1024

log = logging.getLogger(__name__)

Part = bytes | memoryview | Slice
Body = bytes | list[Part]


class Answer:
    """The place of one answer in its connection's order; complete it once, now or later."""

    __slots__ = ("began", "connection", "correlation", "flexible", "framed", "requests", "took")

    began: int  # set with `took`

    def __init__(self, connection: Connection, correlation: int, flexible: bool) -> None:
        self.connection = connection
        self.correlation = correlation
        self.flexible = flexible
        self.framed: Body | None = None  # what is to be sent; None until it is known
        self.requests = 1  # that it answers
        self.took: Distribution | None = None  # where the time since `began` (ns) is noted

    @property
    def abandoned(self) -> bool:
        """Nobody waits for it any more."""
        return self.connection.closed

    def complete(self, body: Body) -> None:
        assert self.framed is None, "an answer is completed once"
        self.framed = framed(body, self.correlation, self.flexible)
        self.connection.answered()

    def skip(self) -> None:
        """No answer is owed after all (acks=0)."""
        self.framed = b""
        self.connection.answered()

    def abandon(self) -> None:
        """The connection has ended before the answer; whoever waits in its name may stop."""

    def hang_up(self, reason: str) -> None:
        """The only way to tell the peer: close its connection."""
        self.connection.close(reason)


def framed(body: Body, correlation: int, flexible: bool) -> Body:
    if isinstance(body, bytes):
        return response_head(len(body), correlation, flexible) + body
    size = sum(part.length if isinstance(part, Slice) else len(part) for part in body)
    return [response_head(size, correlation, flexible), *body]


class Owner(Protocol):
    """What a connection needs of its listener."""

    latest: Connection | None  # the one that was last heard of

    def handle(self, connection: Connection, frames: list[memoryview], position: int) -> int: ...
    def may_buffer(self, more_bytes: int) -> bool: ...
    def forget(self, connection: Connection, reason: str) -> None: ...


class Connection:
    __slots__ = (
        "_answers",
        "_fd",
        "_last_reason",
        "_loop",
        "_on_writable",
        "_out",
        "_out_bytes",
        "_owner",
        "_paused",
        "_resuming",
        "_sending",
        "_sent_of_slice",
        "_stopped",
        "_stream",
        "_turn",
        "_waiting",
        "_when_closed",
        "allowed_fetch",
        "allowed_produce",
        "closed",
        "encrypted",
        "frame_began_at",
        "frames",
        "guard",
        "last_active",
        "last_fetch",
        "last_produce",
        "listener",
        "login",
        "muting",
        "peer",
        "principal",
        "quotas",
        "serial",
        "unread_bytes_max",
    )

    def __init__(
        self,
        stream: Stream,
        peer: str,
        owner: Owner,
        loop: asyncio.AbstractEventLoop,
        turn: Turn,
        frame_bytes_max: int,
        write_bytes_max: int,
        serial: int = 0,
        listener: str = DEFAULT_NAME,
        principal: Principal = ANONYMOUS,
    ) -> None:
        self.peer = peer
        self.listener = listener  # the name of the one that the client came by
        self.principal = principal  # who the client is
        self.serial = serial  # rises with each one that is accepted
        self.closed = False
        self.frames = FrameBuffer(frame_bytes_max)
        self.last_active = loop.time()
        self.frame_began_at: float | None = None  # since when a frame is unfinished
        self.last_produce: produce.Repetition | None = None  # clients repeat themselves: what the
        self.last_fetch: fetch.Repetition | None = None  # handlers compare the next request with
        self.guard: Guard | None = None  # what the principal may do
        self.login: Login | None = None  # how the peer says who it is; None: it need not
        self.encrypted = False  # nobody on the way can read what is said
        self.allowed_produce = 0  # `Security.revision` at which the last produce was allowed
        self.allowed_fetch = 0  # and the last fetch
        self.quotas: Limits | None = None  # what the principal may take; None: as much as it likes
        self._stream = stream
        self._fd = stream.fileno()
        self._owner = owner
        self._loop = loop
        self._turn = turn
        self.unread_bytes_max = write_bytes_max
        self._answers: deque[Answer] = deque()  # in the order of the requests; the first is unanswered
        self._out: deque[Part] = deque()
        self._out_bytes = 0
        self._sent_of_slice = 0
        self._sending = False  # the turn knows that there is something to send
        self._on_writable = False  # the kernel's buffer is full; the loop tells when it isn't
        self._paused = False  # nothing is received: frames wait, or the peer has to take answers
        self._resuming = False  # `_continue` will come
        self._stopped = False
        self.muting: Muting | None = None  # it is not heard until then
        self._last_reason: str | None = None  # why it is closed once all is answered
        self._when_closed: Callable[[Connection], None] | None = None
        self._waiting: list[memoryview] = []  # frames that were received before a pause
        stream.start_reading(loop, self._readable)

    # --- in

    def _readable(self) -> None:
        """Receive and handle. A client that talks alone, and little, is likely to go on at once."""
        alone = self._owner.latest is self
        self._owner.latest = self
        received = self._receive()
        if alone:
            self._listen_on(received)

    def _listen_on(self, received: int) -> None:
        """Look again, as long as all is answered and no frame has begun.

        A thread that syncs needs the interpreter more; and a large frame is better taken in large pieces.
        """
        for _ in range(ROUNDS_MAX):
            if not 0 < received <= CHATTY_BYTES_MAX or self._answers or self.frames.partial:
                return
            received = 0
            for _ in range(LOOKS_AGAIN):
                received = self._receive()
                if received:
                    break

    def _receive(self) -> int:
        """Receive once and handle what is whole. How many bytes came; -1 if no more can come now."""
        if self.closed or self._paused or self._stopped:
            return -1
        frames = self.frames
        space = frames.space()
        if frames.grown_bytes and not self._may_grow():
            self.close("unfinished requests take too much memory")
            return -1
        try:
            count = self._stream.receive_into(space)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.close(f"receive failed: {error.strerror}")
            return -1
        if count == 0:
            self.close("")
            return -1
        self.last_active = self._loop.time()
        whole = frames.take(count)
        self._turn.begin()
        self._handle(whole)
        self._turn.end()
        return count

    def _handle(self, whole: list[memoryview]) -> None:
        """Handle frames in order, up to a bound of this connection; the rest waits for `_continue`."""
        handle = self._owner.handle
        answers = self._answers
        try:
            position, count = 0, len(whole)
            while position < count:
                position = handle(self, whole, position)
                if self.closed:
                    return
                if len(answers) >= REQUESTS_IN_FLIGHT_MAX or self._out_bytes > self.unread_bytes_max:
                    self._pause(whole[position:])
                    return
        except ProtocolError as wrong:
            self.close_when_answered(str(wrong))
            return
        except Exception:
            log.exception("a request from %s failed", self.peer)
            self.close("its request failed")
            return
        if self.frames.wrong:
            self.close_when_answered(self.frames.wrong)
        elif not self.frames.partial:
            self.frame_began_at = None
        elif whole or self.frame_began_at is None:  # behind whole frames a new one has begun
            self.frame_began_at = self.last_active
            self._stream.expect(self.frames.missing)

    def _may_grow(self) -> bool:
        grown, self.frames.grown_bytes = self.frames.grown_bytes, 0
        return self._owner.may_buffer(grown)

    def _full(self) -> bool:
        return len(self._answers) >= REQUESTS_IN_FLIGHT_MAX or self._out_bytes > self.unread_bytes_max

    def _pause(self, waiting: list[memoryview]) -> None:
        """Nothing is received until the peer has taken what is there."""
        self._waiting = waiting
        self._paused = True
        self.frame_began_at = None  # the delay is ours
        self._stream.stop_reading(self._loop)

    def mute(self, seconds: float) -> None:
        """Handle nothing more for so long; answers go out as ever (KIP-219)."""
        if self.closed:
            return
        if self.muting is None:
            self.muting = Muting(self._loop, self.unread_bytes_max, self._unmute)
            self.unread_bytes_max = MUTED  # a limit that is always exceeded, so nobody else is asked for it
            self._pause(self._waiting)
        self.muting.go_on(seconds)

    def _unmute(self, write_bytes_max: int) -> None:
        self.muting, self.unread_bytes_max = None, write_bytes_max
        if self._paused and not self._full():
            self._resume()

    def stop_reading(self) -> None:
        """Stop receiving for good; what was received is still answered."""
        self._stopped = True
        self._stream.stop_reading(self._loop)

    def _resume(self) -> None:
        if not self._resuming:
            self._resuming = True
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        """Frames that were received before the pause come first; then the socket is read again.

        The pause lasts until here: were the socket read before, the waiting frames, which are views of
        the receive buffer, would be overwritten.
        """
        self._resuming = self._paused = False
        if self.closed:
            return
        waiting, self._waiting = self._waiting, []
        self.last_active = self._loop.time()
        self._turn.begin()
        self._handle(waiting)
        self._turn.end()
        if not self._paused and not self.closed and not self._stopped:
            self._stream.start_reading(self._loop, self._readable)

    # --- out

    def park(self, answer: Answer) -> None:
        """Give the answer the next place in the order."""
        self._answers.append(answer)

    def answer_now(self, body: Body, correlation: int, flexible: bool) -> None:
        if self._answers:
            answer = Answer(self, correlation, flexible)
            self._answers.append(answer)
            answer.complete(body)
        else:
            self._send(framed(body, correlation, flexible))

    def answered(self) -> None:
        """Some answer is complete: whatever is complete at the front goes out."""
        answers = self._answers
        while answers:
            answer = answers[0]
            ready = answer.framed
            if ready is None:
                return
            answers.popleft()
            if answer.took is not None:
                answer.took.note(stopwatch_ns() - answer.began, answer.requests)
            self._send(ready)
        if self._paused and not self.closed and not self._full():
            self._resume()

    def _send(self, ready: Body) -> None:
        if isinstance(ready, bytes):
            self._out.append(ready)
            self._out_bytes += len(ready)
        else:
            self._out.extend(ready)
            self._out_bytes += sum(len(part) for part in ready if not isinstance(part, Slice))
        if not self._sending and not self._on_writable:
            self._sending = True
            self._turn.send(self)

    def flush(self) -> None:
        """Send until everything is out or the kernel's buffer is full."""
        self._sending = False
        if self.closed:
            return
        out = self._out
        try:
            while out:
                whole = self._send_file() if isinstance(out[0], Slice) else self._send_bytes()
                if not whole:
                    self.last_active = self._loop.time()  # it takes what it is sent, if slowly
                    self._wait_until_writable()
                    return
        except (BlockingIOError, InterruptedError):
            self._wait_until_writable()
            return
        except OSError as error:
            self.close(f"send failed: {error.strerror}")
            return
        if self._on_writable:
            self._on_writable = False
            self._loop.remove_writer(self._fd)
        if self._last_reason is not None and not self._answers:
            self.close(self._last_reason)
        elif self._paused and not self._full():
            self._resume()

    def _send_bytes(self) -> bool:
        """Send the bytes at the front with one call; whether all of them went."""
        out = self._out
        data = cast("bytes | memoryview", out.popleft())
        more = 0
        if out:
            pieces = [data]
            while out and not isinstance(out[0], Slice) and len(pieces) < GATHER_MAX:
                pieces.append(cast("bytes | memoryview", out.popleft()))
            size = sum(map(len, pieces))
            if size > JOINED_BYTES_MAX and not out:
                return self._send_pieces(pieces)
            data = b"".join(pieces)
            more = MSG_MORE if out else 0  # a file's bytes follow: fill the packet
        try:
            sent = self._stream.send(data, more)
        except BlockingIOError:
            out.appendleft(data)
            raise
        self._out_bytes -= sent
        if sent < len(data):
            out.appendleft(data[sent:])
            return False
        return True

    def _send_pieces(self, pieces: list[bytes | memoryview]) -> bool:
        """Send pieces that are too large to be joined into one; whether all of them went."""
        try:
            sent = self._stream.send_pieces(pieces)
        except BlockingIOError:
            self._out.extendleft(reversed(pieces))
            raise
        self._out_bytes -= sent
        for position, piece in enumerate(pieces):
            if sent < len(piece):
                self._out.extendleft(reversed([memoryview(piece)[sent:], *pieces[position + 1 :]]))
                return False
            sent -= len(piece)
        return True

    def _send_file(self) -> bool:
        records = cast(Slice, self._out[0])
        done = self._sent_of_slice
        sent = self._stream.send_file(records.file, records.position + done, records.length - done)
        if sent == 0:
            raise OSError(5, "a segment is shorter than its index says")
        if done + sent < records.length:
            self._sent_of_slice = done + sent
            return False
        self._out.popleft()
        self._sent_of_slice = 0
        return True

    def _wait_until_writable(self) -> None:
        if not self._on_writable:
            self._on_writable = True
            self._loop.add_writer(self._fd, self.flush)

    # --- its end

    @property
    def answered_all(self) -> bool:
        """Nothing is owed to the peer."""
        return not self._answers and not self._out and not self._waiting

    @property
    def idle(self) -> bool:
        """Nothing is owed in either direction."""
        return self.answered_all and not self.frames.partial

    @property
    def stuck(self) -> bool:
        """The peer takes nothing of what is ready for it."""
        return self._on_writable

    def when_closed(self, call: Callable[[Connection], None]) -> None:
        """There is something that belongs to this connection and ends with it."""
        self._when_closed = call

    def close_when_answered(self, reason: str) -> None:
        """Read no more, and close once the requests before are answered: they are not at fault."""
        self._last_reason = reason
        self.stop_reading()
        if self.answered_all:
            self.close(reason)

    def close(self, reason: str) -> None:
        if self.closed:
            return
        self.closed = True
        if self.muting is not None:
            self.muting.close()
        self._stream.stop_reading(self._loop)
        self._loop.remove_writer(self._fd)
        self._stream.close()
        self._out.clear()
        for answer in self._answers:
            answer.abandon()
        self._answers.clear()
        self._waiting.clear()
        self._owner.forget(self, reason)
        if self._when_closed is not None:
            self._when_closed(self)
