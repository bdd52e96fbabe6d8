"""The helper's side: it reads requests, scans, and answers, until its standard input ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Final

from postroad.client.client import Client
from postroad.client.login import Credentials
from postroad.client.metadata import TopicPartition
from postroad.client.scan import Limits, Scanned, scan
from postroad.errors import ApiError, PostroadError
from postroad.filters import compile_filter
from postroad.gateway.scans import frames
from postroad.gateway.scans.frames import NOT_OF_THE_PROTOCOL, Begin, FoundRecord, ScanAnswer, ScanRequest

NICE: Final = 5  # gateways and nodes come first


def main() -> None:
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the gateway ends it
    asyncio.run(_serve())


async def _serve() -> None:
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    with contextlib.suppress(asyncio.IncompleteReadError):
        begin = await frames.read(stream, Begin)
        credentials = Credentials(*begin.credentials) if begin.credentials else None
        async with Client(begin.bootstrap, client_id="postroad-gateway", credentials=credentials) as client:
            while True:
                request = await frames.read(stream, ScanRequest)
                await _answer(client, request, stream)


async def _answer(client: Client, request: ScanRequest, stream: asyncio.StreamReader) -> None:
    try:
        answer = _written(await _scan(client, request, stream))
    except PostroadError as error:
        code = error.code if isinstance(error, ApiError) else NOT_OF_THE_PROTOCOL
        answer = ScanAnswer(code, str(error), [], 0, {}, False)
    sys.stdout.buffer.write(frames.write(answer))
    sys.stdout.buffer.flush()


async def _scan(client: Client, request: ScanRequest, stream: asyncio.StreamReader) -> Scanned:
    limits = Limits(request.found_max, request.size_bytes, request.seconds, stream.at_eof)
    wanted = compile_filter(request.filter).matches if request.filter else None
    starts = {TopicPartition(request.topic, number): at for number, at in request.starts.items()}
    ends = {TopicPartition(request.topic, number): at for number, at in request.ends.items()}
    return await scan(client, starts, ends, wanted, limits, request.isolation)


def _written(scanned: Scanned) -> ScanAnswer:
    found = [
        FoundRecord(
            topic_partition.partition, record.offset, record.timestamp, record.key, record.value,
            [(name.encode("utf-8", "surrogateescape"), value) for name, value in record.headers],
        )
        for topic_partition, record in scanned.found
    ]  # fmt: skip
    positions = {each.partition: at for each, at in scanned.positions.items()}
    return ScanAnswer(0, "", found, scanned.scanned, positions, scanned.is_over)
