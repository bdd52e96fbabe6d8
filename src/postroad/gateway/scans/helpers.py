"""The gateway's side: helpers are started, asked, kept for the next scan, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Final

from postroad.client.login import Credentials
from postroad.client.metadata import TopicPartition
from postroad.client.scan import Found, Scanned
from postroad.errors import BrokerNotAvailable, RequestTimedOut, by_code
from postroad.gateway.scans import frames
from postroad.gateway.scans.frames import NOT_OF_THE_PROTOCOL, Begin, ScanAnswer, ScanRequest
from postroad.wire.records import Record

IDLE_S: Final = 60.0  # a helper has some 40 MB
MARGIN_S: Final = 30.0  # beyond the scan's own time: it may have to start, and to wait for a leader
LOOK_S: Final = 0.25  # how soon it is noticed that the caller has gone
END_S: Final = 5.0

IsGone = Callable[[], bool]


class _HasEnded(BrokerNotAvailable):
    """The helper died before it answered."""


class Helpers:
    """As many as scans run at once, which others bound."""

    def __init__(self, bootstrap: str, credentials: Credentials | None, idle_s: float = IDLE_S) -> None:
        self._begin = Begin(bootstrap, () if credentials is None else tuple(credentials))
        self._idle_s = idle_s
        self._idle: list[_Helper] = []
        self._ends: dict[_Helper, asyncio.TimerHandle] = {}

    async def scan(self, request: ScanRequest, is_gone: IsGone) -> Scanned:
        """What `client.scan.scan` gives, and raises. Nothing is found for a caller who has gone."""
        kept = self._take()
        if kept is not None:
            with contextlib.suppress(_HasEnded):  # while nobody asked it for anything
                return await self._ask(kept, request, is_gone)
        return await self._ask(await _Helper.start(self._begin), request, is_gone)

    async def _ask(self, helper: _Helper, request: ScanRequest, is_gone: IsGone) -> Scanned:
        try:
            answer = await helper.ask(request, is_gone)
        except BaseException:
            helper.kill()
            raise
        if answer is None:
            helper.kill()
            return Scanned([], 0, _positions(request.topic, request.starts), False)
        self._keep(helper)
        return _read(request.topic, answer)

    async def close(self) -> None:
        """Helpers that scan at this moment end with their callers."""
        while (helper := self._take()) is not None:
            await helper.end()

    def _take(self) -> _Helper | None:
        while self._idle:
            helper = self._idle.pop()
            self._ends.pop(helper).cancel()
            if helper.is_running:
                return helper
        return None

    def _keep(self, helper: _Helper) -> None:
        self._idle.append(helper)
        loop = asyncio.get_running_loop()
        self._ends[helper] = loop.call_later(self._idle_s, self._let_go, helper)

    def _let_go(self, helper: _Helper) -> None:
        self._idle.remove(helper)
        del self._ends[helper]
        helper.kill()


class _Helper:
    def __init__(self, process: Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    @classmethod
    async def start(cls, begin: Begin) -> _Helper:
        command = [sys.executable, "-m", "postroad.gateway.scans"]
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        helper = cls(process)
        helper._to.write(frames.write(begin))
        return helper

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def ask(self, request: ScanRequest, is_gone: IsGone) -> ScanAnswer | None:
        """None: the caller has gone. Raises _HasEnded if the helper dies, RequestTimedOut."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.seconds + MARGIN_S
        self._to.write(frames.write(request))
        reading = asyncio.create_task(frames.read(self._from, ScanAnswer), name="read a scan's answer")
        try:
            while not (await asyncio.wait([reading], timeout=LOOK_S))[0]:
                if is_gone():
                    return None
                if loop.time() > deadline:
                    raise RequestTimedOut("Looking through the topic takes too long; try again.")
            return reading.result()
        except (asyncio.IncompleteReadError, ConnectionError):
            raise _HasEnded("What looks through topics has ended; try again.") from None
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        self._to.close()
        try:
            async with asyncio.timeout(END_S):
                await self._process.wait()
        except TimeoutError:
            self.kill()


def _read(topic: str, answer: ScanAnswer) -> Scanned:
    if answer.error_code == NOT_OF_THE_PROTOCOL:
        raise BrokerNotAvailable(answer.error)
    if answer.error_code:
        raise by_code(answer.error_code, answer.error or None)
    found = [
        Found(
            TopicPartition(topic, each.partition),
            Record(
                each.offset, each.timestamp, each.key, each.value,
                [(name.decode("utf-8", "surrogateescape"), value) for name, value in each.headers],
            ),
        )
        for each in answer.found
    ]  # fmt: skip
    return Scanned(found, answer.scanned, _positions(topic, answer.positions), answer.is_over)


def _positions(topic: str, offsets: dict[int, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, number): at for number, at in offsets.items()}
