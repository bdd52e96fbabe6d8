"""Server-Sent Events: what is written to a topic, for reading only.

    GET /v1/topics/{topic}/tail?from=beginning&partition=0

Nothing is acquired, nothing is remembered: each tail has a fetch of its own, which goes on when the reader
has taken what came before it. A reader that takes nothing is cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec
from aiohttp import hdrs, web

from postroad.client.consumer import Consumer
from postroad.client.fetcher import Fetched
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.push import tail_start
from postroad.gateway.push.message_json import of_record
from postroad.gateway.push.query import number
from postroad.gateway.push.tail_start import BadPosition, Positions
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security.access import OPEN, Access
from postroad.gateway.security.rights import READ

TAILS_MAX: Final = 1000  # each has a connection to the nodes
PARTITIONS_MAX: Final = 100  # the position of each stands in every event
# What a tail holds for a reader that does not read: two fetches, one of them as records.
FETCH_BYTES: Final = 1 << 18
PARTITION_BYTES: Final = 1 << 16
WRITE_BYTES: Final = 1 << 16
LOOK_S: Final = 1.0  # how often a tail without news looks whether it is still wanted
HEARTBEAT_S: Final = 15.0
STUCK_S: Final = 60.0
RETRY_MS: Final = 1000

LAST_EVENT_ID: Final = "Last-Event-ID"
HEADERS: Final = {
    hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8",
    hdrs.CACHE_CONTROL: "no-store",
    "X-Accel-Buffering": "no",  # proxies pass it on as it comes
}

log = logging.getLogger(__name__)


class Tails:
    def __init__(self, gateway: Gateway, heartbeat_s: float = HEARTBEAT_S, stuck_s: float = STUCK_S) -> None:
        self._gateway = gateway
        self._heartbeat_s = heartbeat_s
        self._stuck_s = stuck_s
        self._encode = msgspec.json.Encoder().encode
        self._open = 0

    async def tail(self, request: web.Request, access: Access = OPEN) -> web.StreamResponse:
        if self._open >= TAILS_MAX:
            raise Refused(problems.UNAVAILABLE, f"This gateway already serves {TAILS_MAX} tails.")
        self._open += 1
        try:
            topic = request.match_info["topic"]
            positions = await self._begin(request, topic)
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            await self._follow(request, response, topic, positions, access)
        finally:
            self._open -= 1
        return response

    async def _begin(self, request: web.Request, topic: str) -> Positions:
        """Raises Refused."""
        count = len((await self._gateway.client.topic(topic)).partitions)
        only = number(request.query, "partition", 0, count - 1)
        partitions = list(range(count)) if only is None else [only]
        if len(partitions) > PARTITIONS_MAX:
            raise Refused(
                problems.MALFORMED, f"{topic} has {count} partitions: name one of them with `partition`."
            )
        begin = request.headers.get(LAST_EVENT_ID) or request.query.get("from", "end")
        try:
            return await tail_start.find(self._gateway.client, topic, partitions, begin)
        except BadPosition as error:
            raise Refused(problems.MALFORMED, str(error)) from None

    async def _follow(
        self,
        request: web.Request,
        response: web.StreamResponse,
        topic: str,
        positions: Positions,
        access: Access,
    ) -> None:
        consumer = Consumer(
            self._gateway.client, reset=EARLIEST, max_bytes=FETCH_BYTES, partition_bytes=PARTITION_BYTES
        )
        try:
            async with consumer:
                await consumer.assign({TopicPartition(topic, at): offset for at, offset in positions.items()})
                await self._send(response, b"retry: %d\n\n" % RETRY_MS)
                may_read = partial(access.check_topic, topic, READ)
                await self._events(request, response, consumer, positions, may_read)
        except (ConnectionError, TimeoutError) as error:
            log.info("the tail for %s ends: %s", request.remote, error or type(error).__name__)
            if request.transport is not None:
                request.transport.abort()  # what it didn't take would wait for ever
        except PostroadError as error:
            await self._send(response, b"event: error\ndata: %b\n\n" % self._encode({"error": str(error)}))

    async def _events(
        self,
        request: web.Request,
        response: web.StreamResponse,
        consumer: Consumer,
        positions: Positions,
        check_rights: Callable[[], None],
    ) -> None:
        """Raises TopicAuthorizationFailed as soon as the reader may not read the topic any more."""
        loop = asyncio.get_running_loop()
        said_at = loop.time()
        while not self._gateway.closing.is_set() and request.transport is not None:
            fetched = await consumer.poll(LOOK_S)
            check_rights()
            if not fetched and loop.time() - said_at < self._heartbeat_s:
                continue
            for chunk in self._written(fetched, positions):
                await self._send(response, chunk)
            if not fetched:
                await self._send(response, b": nothing new\n\n")
            said_at = loop.time()

    def _written(self, fetched: list[Fetched], positions: Positions) -> Iterator[bytes]:
        """Each record as an event, with the position behind it as its id."""
        chunk = bytearray()
        for topic_partition, records, _ in fetched:
            for record in records:
                positions[topic_partition.partition] = record.offset + 1
                data = self._encode(of_record(*topic_partition, record))
                chunk += b"id: %b\ndata: %b\n\n" % (tail_start.write(positions).encode(), data)
                if len(chunk) >= WRITE_BYTES:
                    yield bytes(chunk)
                    chunk.clear()
        if chunk:
            yield bytes(chunk)

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(self._stuck_s):
            await response.write(data)
