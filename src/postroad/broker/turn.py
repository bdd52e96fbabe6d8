"""One turn of the loop: what arrived together is written together and answered together.

Handlers run while the frames of one read come in; they stage batches and leave answers. Then the
turn ends:

    1. internal logs make one batch of what was decided in this turn (`record_log`),
    2. every partition with staged batches writes them with one call,
    3. high watermarks move (or a sync is asked for), parked answers are completed,
    4. every connection with something to say sends it with one call.

So a hundred small requests cost one write and one send. What goes wrong with one of them is logged and
does not keep the others from their answers. The staged batches are views of the
receive buffer; they stay valid because nothing is received before the turn has ended.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

log = logging.getLogger(__name__)


class Gathering(Protocol):
    def gather(self) -> None: ...


class Staged(Protocol):
    def write(self) -> None: ...


class WriteWaiter(Protocol):
    def written(self) -> None: ...


class Sending(Protocol):
    def flush(self) -> None: ...


class Turn:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running = False  # `end` will come: by itself, or by the loop
        self._gathering: list[Gathering] = []
        self._staged: list[Staged] = []
        self._waiting: list[WriteWaiter] = []
        self._sending: list[Sending] = []

    def begin(self) -> None:
        """Whoever handles frames begins a turn and ends it; everybody else leaves that to the loop."""
        self._running = True

    def gather(self, records: Gathering) -> None:
        """There are records that will be staged as one batch; the log asks once a turn."""
        self._gathering.append(records)
        if not self._running:
            self._schedule()

    def stage(self, partition: Staged) -> None:
        """The partition has batches to write; it asks once a turn."""
        self._staged.append(partition)
        if not self._running:
            self._schedule()

    def when_written(self, waiting: WriteWaiter) -> None:
        """Call back once everything staged in this turn is written (or was refused)."""
        self._waiting.append(waiting)
        if not self._running:
            self._schedule()

    def send(self, connection: Sending) -> None:
        """The connection has bytes to send; it asks once a turn."""
        self._sending.append(connection)
        if not self._running:
            self._schedule()

    def end(self) -> None:
        """All steps, until nothing is left: what one step leaves for another is done at once."""
        while self._gathering or self._staged or self._waiting or self._sending:
            if self._gathering:
                self._gather()
            staged, self._staged = self._staged, []
            for partition in staged:
                try:
                    partition.write()
                except Exception:
                    log.exception("what was staged could not be written")
            # Followers and consumers that waited have what was written before the producer its answer.
            while self._sending:
                self._send()
            waiters, self._waiting = self._waiting, []
            for waiting in waiters:
                try:
                    waiting.written()
                except Exception:
                    log.exception("an answer could not be made")
            self._send()
        self._running = False

    def _gather(self) -> None:
        gathering, self._gathering = self._gathering, []
        for records in gathering:
            try:
                records.gather()
            except Exception:
                log.exception("records of the node's own topics could not be staged")

    def _send(self) -> None:
        sending, self._sending = self._sending, []
        for connection in sending:
            try:
                connection.flush()
            except Exception:
                log.exception("an answer could not be sent")

    def _schedule(self) -> None:
        self._running = True
        self._loop.call_soon(self.end)
