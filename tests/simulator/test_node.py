"""A real node and real clients on the simulator: what they do, and that a seed repeats it."""

from __future__ import annotations

import os
import subprocess
import sys

from postroad.broker.node import Node
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.client.producer import Producer
from postroad.config import load
from postroad.errors import PostroadError
from simulator.machine import Machine
from simulator.network import Network
from simulator.process import Process
from simulator.runtime import ClientRuntime
from simulator.store import StoreServer
from simulator.world import World

HOST, TOPIC, MESSAGES = "127.0.0.1", "orders", 100


class Scene:
    """One node, and as many clients as are started."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.machine = Machine(self.world, self.network, StoreServer(self.world), HOST)
        self.loaded = load(
            environment={},
            flags={
                "http.enabled": "false",
                "data.dir": "/data",
                "kafka.host": HOST,
                "kafka.port": "9092",
                "topics.partitions": "1",
                "groups.offsets_partitions": "4",
            },
        )

    def start_node(self) -> None:
        """Start it, as often as it takes: while the lease of the last one lives its start is refused."""
        deadline = self.world.now + 60
        while (refusal := self._try_to_start()) is not None:
            assert self.world.now < deadline, refusal
            self.machine.kill()
            self.world.run_for(1)

    def _try_to_start(self) -> PostroadError | None:
        process = self.machine.boot()

        async def serve() -> PostroadError | None:
            try:
                await Node(self.loaded, self.machine.runtime(process)).start()
            except PostroadError as error:
                return error
            return None

        started = process.start(serve())
        self.world.run_until(started.done, within=60)
        return started.result()

    def client(self, name: str) -> tuple[Process, Client]:
        process = Process(self.world, name)
        runtime = ClientRuntime(process, self.network)
        return process, Client(f"{HOST}:9092", client_id=name, timeout_s=20, runtime=runtime)

    def produce(self, first: int, count: int) -> None:
        process, client = self.client("producer")

        async def work() -> None:
            async with client, Producer(client) as producer:
                for number in range(first, first + count):
                    await (await producer.send(TOPIC, b"%d" % number))

        task = process.start(work())
        self.world.run_until(task.done, within=60)
        task.result()
        process.end()

    def consume(self, count: int) -> list[bytes]:
        process, client = self.client("consumer")
        values: list[bytes] = []

        async def work() -> None:
            async with client, Consumer(client, reset=EARLIEST) as consumer:
                await consumer.assign({TopicPartition(TOPIC, 0): EARLIEST})
                while len(values) < count:
                    for _, records, _ in await consumer.poll(1.0):
                        values.extend(record.value or b"" for record in records)

        task = process.start(work())
        self.world.run_until(task.done, within=60)
        task.result()
        process.end()
        return values


def run(seed: int) -> str:
    """Produce and consume with a kill and a power cut in between; answers the hash of all that happened."""
    scene = Scene(seed)
    with scene.world as world:
        scene.start_node()
        scene.produce(0, MESSAGES)
        assert scene.consume(MESSAGES) == [b"%d" % number for number in range(MESSAGES)]
        scene.machine.kill()
        scene.start_node()
        scene.produce(MESSAGES, 10)
        scene.machine.cut_power()
        world.run_for(1)
        scene.start_node()
        expected = [b"%d" % number for number in range(MESSAGES + 10)]
        assert scene.consume(MESSAGES + 10) == expected
        assert world.complaints == []
        return world.trace.digest


def test_messages_survive_the_end_of_their_node_and_time_is_virtual() -> None:
    run(1)


def test_the_same_seed_gives_the_same_trace_and_another_seed_another_one() -> None:
    first, again, other = run(2), run(2), run(3)
    assert first == again
    assert first != other


def test_the_same_seed_gives_the_same_trace_in_every_python_process() -> None:
    digests = {run(4)}
    for hash_seed in ("1", "2"):
        code = "from tests.simulator.test_node import run; print(run(4))"
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        digests.add(ran.stdout.strip())
    assert len(digests) == 1
