"""A client takes time and chance from its runtime alone."""

from __future__ import annotations

from random import Random

from postroad.broker.runtime import SystemRuntime
from postroad.client import Client, Producer
from postroad.client.partitioner import StickyPartition
from postroad.client.runtime import Runtime
from postroad.client.share_member import ShareMember
from postroad.now import Now
from postroad.system import sockets
from postroad.testing import Node

STOPPED_MS = 1_234_567_890_123


class Stopped:
    """A clock that says the same for ever."""

    def now_ms(self) -> int:
        return STOPPED_MS

    def monotonic_ms(self) -> int:
        return 0

    def now(self) -> Now:
        return Now(0, STOPPED_MS)


class Seeded:
    def __init__(self, seed: int) -> None:
        self.clock = Stopped()
        self.random = Random(seed)
        self.connect = sockets.connect


async def test_records_are_stamped_by_the_runtimes_clock(postroad_session: Node) -> None:
    async with (
        Client(postroad_session.bootstrap, timeout_s=10, runtime=Seeded(1)) as client,
        Producer(client) as producer,
    ):
        sent = await (await producer.send("stamped-by-a-runtime", b"value"))
    assert sent.timestamp == STOPPED_MS


async def test_the_same_seed_makes_the_same_choices() -> None:
    def choices(seed: int) -> tuple[str, int]:
        runtime = Seeded(seed)
        member = ShareMember(Client("nowhere", runtime=runtime), "group")
        return member.id, StickyPartition(runtime).choose(1000)

    assert choices(1) == choices(1) != choices(2)


async def test_a_nodes_runtime_is_one_for_clients() -> None:
    runtime: Runtime = SystemRuntime()
    assert Client("nowhere", runtime=runtime).runtime is runtime
