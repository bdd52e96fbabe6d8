"""A real node on virtual time, with the same methods as `tests.broker.harness.Running`.

Nothing happens by itself: the node runs while a test waits for an answer, or for time to pass (`run_for`). A
day costs milliseconds, and a machine that is busy changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from postroad.broker.connection import Connection
from postroad.broker.node import Node
from postroad.config import load
from postroad.system.stream import Stream
from postroad.wire.records import Record, encode_batch
from simulator.machine import Machine
from simulator.network import Network
from simulator.process import Process
from simulator.runtime import ClientRuntime
from simulator.store import StoreServer
from simulator.world import World
from tests.broker.harness import Running
from tests.faults.raw import ANSWER_S, Closed, RawConnection, send_batch

HOST, PORT = "10.0.0.1", 9092
START_S = 30.0
CALM_S, PAUSE_S = 0.001, 0.05  # of virtual time, between two looks at a connection: at first, and at most
T = TypeVar("T")


class SimulatedConnection(RawConnection):
    """Every wait lets virtual time pass."""

    def __init__(self, world: World, process: Process, stream: Stream) -> None:
        self.process = process
        self._world = world
        self._stream = stream
        self._correlation_id = 0

    def __exit__(self, *_: object) -> None:
        self.process.end()

    def send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._patiently(partial(self._stream.send, left)) :]

    def is_closed_by_broker(self, within_s: float = ANSWER_S) -> bool:
        deadline = self._world.now + within_s
        while self._world.now < deadline:
            try:
                if not self.take():
                    return True
            except BlockingIOError:
                self._world.run_for(PAUSE_S)
            except ConnectionError:
                return True
        return False

    def take(self, count: int = 1 << 16) -> bytes:
        """What has come already. BlockingIOError if that is nothing."""
        space = memoryview(bytearray(count))
        return bytes(space[: self._stream.receive_into(space)])

    def take_some(self) -> bytes:
        """What comes next; nothing when the broker sends no more."""
        return self._patiently(self.take)

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._patiently(partial(self.take, count - len(data)))
            if not part:
                raise Closed
            data += part
        return bytes(data)

    def _patiently(self, attempt: Callable[[], T]) -> T:
        deadline, pause_s = self._world.now + 1000 * ANSWER_S, CALM_S
        while self._world.now < deadline:
            try:
                return attempt()
            except BlockingIOError:
                self._world.run_for(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S)
            except ConnectionError as error:
                raise Closed from error
        raise TimeoutError


class SimulatedNode(Running):
    def __init__(self, seed: int = 1, **settings: Any) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.machine = Machine(self.world, self.network, StoreServer(self.world), HOST)
        given = {name.replace("_", ".", 1): str(value) for name, value in settings.items()}
        fixed = {"kafka.host": HOST, "kafka.port": str(PORT), "kafka.insecure": "true", "data.dir": "/data"}
        self._loaded = load(environment={}, flags={"http.enabled": "false"} | given | fixed)
        self._clients = 0

    def start(self) -> None:
        process = self.machine.boot()
        self.node = Node(self._loaded, self.machine.runtime(process))
        self.began_ms = process.clock.now_ms()
        self.run(self.node.start())
        self.run_for(1)  # groups have been loaded

    def stop(self) -> None:
        if self.machine.alive:
            self.run(self.node.stop())
            self.machine.kill()

    def run_for(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.world.run_for(seconds)

    def until(self, condition: Callable[[], object], within_s: float = ANSWER_S) -> None:
        self.world.run_until(lambda: bool(condition()), within_s)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self.machine.process is not None
        return self._run(self.machine.process, work)

    def _run(self, process: Process, work: Coroutine[Any, Any, T]) -> T:
        task = process.start(work)
        self.world.run_until(task.done, START_S, CALM_S)
        return task.result()

    @property
    def bootstrap(self) -> str:
        raise NotImplementedError("real clients can't reach it: use connect or session")

    def connect(self, receive_buffer: int | None = None) -> SimulatedConnection:
        assert receive_buffer is None
        self._clients += 1
        process = Process(self.world, f"client-{self._clients}")
        stream = self._run(process, ClientRuntime(process, self.network).connect(HOST, PORT))
        return SimulatedConnection(self.world, process, stream)

    def inside(self, client: RawConnection) -> Connection:
        assert isinstance(client, SimulatedConnection)
        peer = client.process.host

        def found() -> list[Connection]:
            return [one for one in self.node.listener.connections if one.peer.startswith(f"{peer}:")]

        self.until(found)
        return found()[0]

    def publish(self, topic: str, *values: bytes, partition: int = 0, **header: int) -> int:
        """`postroad_delay_ms=300` is a header of each message."""
        headers = [(name.replace("_", "-"), b"%d" % value) for name, value in header.items()]
        with self.connect() as connection:
            for value in values:
                record = Record(0, self.node.clock.now_ms(), b"key", value, [*headers])
                answer = send_batch(connection, topic, encode_batch([record]), partition=partition)
                assert answer.error_code == 0, answer.error_message
        return int(answer.base_offset)


@contextmanager
def simulated_node(**settings: Any) -> Iterator[SimulatedNode]:
    simulated = SimulatedNode(**settings)
    with simulated.world:
        simulated.start()
        yield simulated
        simulated.stop()
        assert simulated.world.complaints == []
