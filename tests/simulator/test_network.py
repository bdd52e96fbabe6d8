"""Connections between simulated processes, in calm and under faults."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from postroad.system.stream import Stream
from simulator.network import Network
from simulator.process import Process
from simulator.world import World

T = TypeVar("T")
PORT = 9092


async def readable(stream: Stream) -> None:
    await _ready(stream, "reader")


async def _ready(stream: Stream, kind: str) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    number = stream.fileno()
    add, remove = getattr(loop, f"add_{kind}"), getattr(loop, f"remove_{kind}")

    def tell() -> None:
        if not future.done():
            future.set_result(None)

    add(number, tell)
    try:
        await future
    finally:
        remove(number)


async def receive(stream: Stream) -> bytes:
    space = memoryview(bytearray(65536))
    while True:
        try:
            return bytes(space[: stream.receive_into(space)])
        except BlockingIOError:
            await readable(stream)


async def receive_all(stream: Stream) -> bytes:
    found = b""
    while piece := await receive(stream):
        found += piece
    return found


async def send(stream: Stream, data: bytes) -> None:
    while data:
        try:
            data = data[stream.send(data) :]
        except BlockingIOError:
            await _ready(stream, "writer")


class Pair:
    """A server that gives each connection to `serve`, and a client on another host."""

    def __init__(self, seed: int, serve: Callable[[Stream], Awaitable[Any]]) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.client = Process(self.world, "client")
        self._serve = serve
        self.boot()

    def boot(self) -> None:
        self.network.power("server", on=True)
        self.server = Process(self.world, "server")
        self.server.start(self._listen())

    def cut_power(self) -> None:
        self.server.end(power=True)
        self.network.power("server", on=False)

    async def _listen(self) -> None:
        listening = self.network.listen(self.server, "server", PORT, 5)
        loop = asyncio.get_running_loop()
        tasks = set()

        def accept() -> None:
            tasks.add(loop.create_task(self._handle(listening.accept().stream)))

        loop.add_reader(listening.fileno(), accept)
        await asyncio.Event().wait()

    async def _handle(self, stream: Stream) -> None:
        try:
            await self._serve(stream)
        except OSError:
            stream.close()

    async def connect(self) -> Stream:
        return await self.network.connect(self.client, "server", PORT)

    def start(self, work: Callable[[Stream], Awaitable[T]]) -> asyncio.Task[T]:
        async def run() -> T:
            return await work(await self.connect())

        return self.client.start(run())


async def echo(stream: Stream) -> None:
    while data := await receive(stream):
        await send(stream, data)
    stream.close()


@pytest.mark.parametrize("seed", range(8))
def test_bytes_arrive_whole_and_in_order_through_small_windows_cuts_and_stalls(seed: int) -> None:
    content = bytes(range(256)) * 4000
    received: list[bytes] = []

    async def serve(stream: Stream) -> None:
        received.append(await receive_all(stream))

    async def work(stream: Stream) -> None:
        for at in range(0, len(content), 50_000):
            await send(stream, content[at : at + 50_000])
            await asyncio.sleep(0.05)
        stream.close()

    pair = Pair(seed, serve)
    with pair.world as world:
        pair.network.conditions.short = 0.3
        pair.network.conditions.small_windows = 0.5
        pair.network.conditions.spikes = 0.3
        pair.start(work)
        random = world.random("test")
        for _ in range(10):
            world.run_for(random.random() / 20)
            pair.network.cut("client", "server", one_way=random.random() < 0.5)
            world.run_for(random.random() / 5)
            pair.network.heal()
            pair.network.stall("client", "server", 0.1)
        world.run_for(60)
    assert received == [content]


def test_an_answer_comes_back_after_some_time() -> None:
    async def work(stream: Stream) -> tuple[bytes, float]:
        await send(stream, b"hello")
        return await receive(stream), world.now

    pair = Pair(1, echo)
    with pair.world as world:
        began = world.now
        task = pair.start(work)
        world.run_for(1)
        answer, at = task.result()
        assert answer in (b"hello", b"hell", b"hel", b"he", b"h")
        assert at > began + 4 * 50e-6


def test_a_port_where_nobody_listens_refuses() -> None:
    pair = Pair(1, echo)
    with pair.world as world:
        task = pair.client.start(pair.network.connect(pair.client, "server", 1))
        world.run_for(1)
        assert isinstance(task.exception(), ConnectionRefusedError)
        with pytest.raises(OSError) as found:
            pair.network.listen(pair.server, "server", PORT, 5)
        assert found.value.errno == errno.EADDRINUSE
        with pytest.raises(OSError) as found:
            pair.network.listen(pair.server, "elsewhere", PORT, 5)
        assert found.value.errno == errno.EADDRNOTAVAIL


def test_a_host_behind_a_cut_is_reached_once_it_is_healed() -> None:
    pair = Pair(1, echo)
    with pair.world as world:
        pair.network.cut("client", "server")
        task = pair.start(receive)
        world.run_for(3)
        assert not task.done()
        pair.network.heal("client", "server")
        world.run_until(lambda: len(pair.network._connections) == 1, within=10)


def test_a_killed_peer_ends_its_connections() -> None:
    pair = Pair(1, echo)
    with pair.world as world:
        task = pair.start(receive)
        world.run_for(1)
        pair.server.end()
        world.run_for(1)
        assert task.result() == b""


def test_a_peer_without_power_is_half_open_until_somebody_sends_to_it() -> None:
    async def work(stream: Stream) -> str:
        try:
            await asyncio.sleep(5)
            await send(stream, b"are you there?")
            await receive(stream)
        except ConnectionResetError:
            return f"reset at {world.now - began:.1f}"
        return "answered"

    pair = Pair(1, echo)
    with pair.world as world:
        began = world.now
        idle, asks = pair.start(receive), pair.start(work)
        world.run_for(1)
        pair.cut_power()
        world.run_for(9)
        assert not idle.done()
        assert not asks.done()
        pair.boot()
        world.run_for(1)
        assert not idle.done()
        assert asks.result() in ("reset at 10.0", "reset at 10.1", "reset at 10.2", "reset at 10.3")


def test_a_reset_breaks_both_ends() -> None:
    pair = Pair(1, echo)
    with pair.world as world:
        task = pair.start(receive)
        world.run_for(1)
        pair.network.reset_between("client", "server")
        world.run_for(1)
        assert isinstance(task.exception(), ConnectionResetError)
        assert world.seen["a connection was reset"] == 2


def test_a_dead_process_can_not_send() -> None:
    pair = Pair(1, echo)
    with pair.world as world:
        task = pair.client.start(pair.connect())
        world.run_for(1)
        pair.client.end()
        with pytest.raises(SystemExit):
            task.result().send(b"from the dead")
        task.result().close()


def test_a_connection_that_nobody_waits_for_any_more_is_reset() -> None:
    ended: list[bytes | OSError] = []

    async def serve(stream: Stream) -> None:
        try:
            ended.append(await receive(stream))
        except OSError as error:
            ended.append(error)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.0003):
                await pair.connect()

    pair = Pair(1, serve)
    with pair.world as world:
        pair.network.conditions.latency_s = (0.0002, 0.0002)
        pair.network.conditions.spikes = 0
        world.run_for(0.1)
        task = pair.client.start(give_up())
        world.run_for(1)
        assert task.done()
        assert task.exception() is None
        assert [type(found) for found in ended] == [ConnectionResetError]
