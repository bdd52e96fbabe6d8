"""Clients that fall silent, stop reading or are many: their locks end, their messages do not."""

from __future__ import annotations

import asyncio
import json
import socket as sockets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import pytest
from aiohttp import web
from websockets.asyncio.client import ClientConnection, connect

from postroad.gateway import push
from postroad.gateway.gateway import Gateway
from postroad.gateway.push.json_frames import JsonFormat
from postroad.gateway.push.stream import Options, Stream
from postroad.gateway.push.websocket import WebSocketEdge
from tests.gateway.conftest import RunningGateway, StartGateway, gateway_in_thread
from tests.gateway.push.conftest import Queue

SOON_S = 30.0
VALUE = b'"value":"1"'


def impatient(gateway: Gateway) -> list[web.RouteDef]:
    return [
        web.get("/v1/subscriptions/{name}/stream", WebSocketEdge(gateway, ping_s=0.2, stuck_s=0.5).stream)
    ]


@pytest.fixture(scope="module")
def impatient_gateway(start_gateway: StartGateway) -> RunningGateway:
    """Only for clients that are to be lost: others may be held up for longer than it waits."""
    return start_gateway([impatient])


@pytest.fixture
def lossy(impatient_gateway: RunningGateway, name: str) -> Queue:
    queue = Queue(impatient_gateway, name)
    queue.create()
    return queue


@contextmanager
def mute(queue: Queue) -> Iterator[sockets.socket]:
    """A client that can say something, and then never answers anything: there is no one behind it."""
    host, port = queue.running.url.removeprefix("http://").split(":")
    with sockets.create_connection((host, int(port)), timeout=SOON_S) as socket:
        path = f"/v1/subscriptions/{queue.name}/stream?credit=1000&lock_ms=600000"
        head = (
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        socket.sendall(head.encode())
        assert b" 101 " in read_until(socket, b"\r\n\r\n")
        yield socket


def read_until(socket: sockets.socket, text: bytes) -> bytes:
    """Up to this text and not a byte more, or up to the end of the connection."""
    got = b""
    with suppress(ConnectionError):
        while not got.endswith(text) and (byte := socket.recv(1)):
            got += byte
    return got


def frame(text: str) -> bytes:
    """A client's frame; its mask is zero."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode()


def speak_for_long(socket: sockets.socket) -> None:
    for _ in range(1500):
        socket.sendall(frame('{"type": "credit", "messages": 1}'))
        socket.sendall(frame('{"type": "accept", "ids": [99999]}'))
        time.sleep(0.02)


def pull_all(queue: Queue, count: int) -> list[bytes]:
    pulled: list[bytes] = []
    while len(pulled) < count:
        came = queue.pull(20_000)
        assert came, f"only {len(pulled)} came"
        pulled += [value for value in came if value is not None]
    return pulled


def test_a_client_that_answers_no_ping_loses_its_locks_and_never_its_messages(lossy: Queue) -> None:
    lossy.publish([b"1", b"2"])

    def is_lost_with_a_message() -> bool:
        """False if it was lost before any came."""
        with mute(lossy) as socket:
            if not read_until(socket, VALUE).endswith(VALUE):
                return False
            assert sorted(pull_all(lossy, 2)) == [b"1", b"2"]
        return True

    assert any(is_lost_with_a_message() for _ in range(4))


def test_a_client_that_speaks_and_does_not_read_is_cut_off(lossy: Queue) -> None:
    lossy.publish([b"x" * 900_000] * 16)
    with mute(lossy) as socket:
        with pytest.raises(ConnectionError):
            speak_for_long(socket)
        pull_all(lossy, 16)


def test_what_had_not_been_sent_to_a_client_that_is_lost_was_not_delivered(queue: Queue) -> None:
    gateway = queue.running.gateway
    queue.publish([b"%d" % n for n in range(5)])

    async def stream() -> dict[bytes | None, int]:
        """How often each was delivered, when a client was lost that took nothing."""
        sending = asyncio.Event()

        async def send(_: bytes) -> None:
            sending.set()
            await asyncio.Event().wait()

        async def lost() -> AsyncIterator[str]:
            await sending.wait()
            for nothing in list[str]():
                yield nothing

        await Stream(gateway, queue.name, Options(credit=5), JsonFormat(1), send).run(lost())
        again = await gateway.receive(queue.name, 5, 20_000)
        return {each.message.value: each.message.delivery_count for each in again}

    assert queue.running.run(stream()) == {b"0": 2, b"1": 1, b"2": 1, b"3": 1, b"4": 1}


async def test_two_streams_share_a_subscription_and_no_message_goes_to_both(queue: Queue) -> None:
    seen: list[int] = []
    all_seen = asyncio.Event()

    async def read(socket: ClientConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            seen.append(message["offset"])
            if len(seen) == 200:
                all_seen.set()
            await socket.send(json.dumps({"type": "accept", "ids": [message["id"]]}))
            await socket.send('{"type": "credit", "messages": 1}')

    async with connect(f"{queue.url}?credit=5") as one, connect(f"{queue.url}?credit=5") as other:
        readers = [asyncio.create_task(read(one)), asyncio.create_task(read(other))]
        await asyncio.to_thread(queue.publish, [b"%d" % n for n in range(200)])
        async with asyncio.timeout(SOON_S):
            await all_seen.wait()
    await asyncio.gather(*readers)
    assert sorted(seen) == list(range(200))
    assert await asyncio.to_thread(queue.pull) == []


async def test_a_slow_client_slows_no_other(queue: Queue) -> None:
    async with connect(f"{queue.url}?credit=3") as slow, connect(f"{queue.url}?credit=1000") as fast:
        await asyncio.to_thread(queue.publish, [b"%d" % n for n in range(100)])
        got = 0
        async with asyncio.timeout(SOON_S):
            while got < 97:
                json.loads(await fast.recv())
                got += 1
        assert slow.close_code is None


def test_a_gateway_that_stops_says_so_and_releases_what_its_clients_held(queue: Queue, name: str) -> None:
    async def listen(url: str, connected: asyncio.Future[None]) -> int:
        async with connect(url) as socket:
            json.loads(await socket.recv())
            connected.set_result(None)
            await socket.wait_closed()
            return socket.close_code or 0

    async def stop_while_listening() -> int:
        connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        running = gateway_in_thread(queue.running.bootstrap, [push.routes])
        other = await asyncio.to_thread(running.__enter__)
        url = queue.url.replace(queue.running.url.removeprefix("http"), other.url.removeprefix("http"))
        listening = asyncio.create_task(listen(f"{url}?credit=10", connected))
        async with asyncio.timeout(SOON_S):
            await connected
        await asyncio.to_thread(other.run, other.gateway.end_waits())
        await asyncio.to_thread(running.__exit__, None, None, None)
        return await listening

    queue.publish([b"held"])
    assert asyncio.run(stop_while_listening()) == 1001
    assert queue.pull(20_000) == [b"held"]


def test_frame_that_is_not_masked_ends_the_connection(queue: Queue) -> None:
    text = '{"type": "credit", "messages": 1}'
    with mute(queue) as socket:
        socket.sendall(frame(text) + bytes([0x81, len(text)]) + text.encode())
        assert read_until(socket, b"\x03\xea").endswith(b"\x88\x02\x03\xea")
        assert socket.recv(1) == b""


def test_pings_and_pongs_of_a_client_that_says_nothing_take_no_memory(queue: Queue) -> None:
    """Else clients that wait for days for a message would leave none to others."""
    empty, full = bytes([0x8A, 0x80, 0, 0, 0, 0]), bytes([0x89, 0x84, 0, 0, 0, 0]) + b"last"
    with mute(queue) as socket:
        socket.sendall(empty * 3000 + full)
        assert read_until(socket, b"\x8a\x04last").endswith(b"last")
        assert queue.running.door.memory.received_bytes == 0
