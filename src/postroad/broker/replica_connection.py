"""A follower's connection to its leader: whole frames out, whole frames in, without copies.

What is received is handed over in the call that received it, as a view of the receive buffer: it is valid
until that call returns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from postroad.errors import ProtocolError
from postroad.system.stream import Stream
from postroad.wire.framing import FrameBuffer

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024  # answers have 8 MiB, or one batch that is larger
RECEIVES_MAX: Final = 8  # in one turn, of a large answer; then others get theirs


class ReplicaConnection:
    def __init__(
        self,
        stream: Stream,
        loop: asyncio.AbstractEventLoop,
        received: Callable[[memoryview], None],
        ended: Callable[[str], None],
    ) -> None:
        """`received` gets each frame, `ended` why there will be no more; neither after `close`."""
        self._stream = stream
        self._loop = loop
        self._received = received
        self._ended = ended
        self._fd = stream.fileno()
        self._frames = FrameBuffer(FRAME_BYTES_MAX)
        self._unsent: deque[memoryview] = deque()
        self._closed = False
        stream.start_reading(loop, self._receive)

    def send(self, frame: bytes) -> None:
        """Send the frame: at once if the kernel takes it all, as it nearly always does."""
        if self._unsent:
            self._unsent.append(memoryview(frame))
            return
        try:
            sent = self._stream.send(frame)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._end(error.strerror or str(error))
            return
        if sent < len(frame):
            self._unsent.append(memoryview(frame)[sent:])
            self._loop.add_writer(self._fd, self._send_rest)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._stream.stop_reading(self._loop)
            self._loop.remove_writer(self._fd)
            self._stream.close()

    def _send_rest(self) -> None:
        try:
            while self._unsent:
                sent = self._stream.send(self._unsent[0])
                if sent < len(self._unsent[0]):
                    self._unsent[0] = self._unsent[0][sent:]
                else:
                    self._unsent.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error.strerror or str(error))
            return
        self._loop.remove_writer(self._fd)

    def _receive(self) -> None:
        for _ in range(RECEIVES_MAX):
            space = self._frames.space()
            try:
                count = self._stream.receive_into(space)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._end(error.strerror or str(error))
                return
            if not count:
                self._end("the leader ended the connection")
                return
            try:
                self._take(count)
            except ProtocolError as error:
                self._end(str(error))
                return
            if count < len(space) or self._closed:
                return

    def _take(self, count: int) -> None:
        for frame in self._frames.take(count):
            if not self._closed:
                self._received(frame)
        if self._frames.wrong:
            raise ProtocolError(self._frames.wrong)

    def _end(self, reason: str) -> None:
        if not self._closed:
            self.close()
            self._ended(reason)
