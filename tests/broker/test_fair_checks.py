"""Whoever guesses passwords from many connections delays hardly anybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from postroad.broker.fair_checks import OF_ADDRESS_MAX, FairChecks


class Waiting:
    """A thread that does one job whenever it is told to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    def run(self, job: Callable[[], Any], done: Callable[..., None]) -> None:
        raise AssertionError("nobody calls back here")

    async def call(self, job: Callable[[], Any]) -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.jobs.append((job, done))
        return await done

    def work(self) -> None:
        job, done = self.jobs.pop(0)
        done.set_result(job())

    def close(self) -> None:
        pass


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_another_address_does_not_wait_behind_a_flood() -> None:
    thread = Waiting()
    checks, order = FairChecks(thread), list[str]()
    flood = [
        asyncio.create_task(checks.call("attacker", lambda n=n: order.append(f"guess {n}")))  # type: ignore[misc]
        for n in range(1000)
    ]
    await settled()
    honest = asyncio.create_task(checks.call("honest", lambda: order.append("honest")))
    await settled()
    assert len(thread.jobs) == OF_ADDRESS_MAX + 1
    while not honest.done():
        thread.work()
        await settled()
    assert order.index("honest") == OF_ADDRESS_MAX
    while thread.jobs:
        thread.work()
        await settled()
    await asyncio.gather(*flood)
    assert order[:OF_ADDRESS_MAX] == [f"guess {n}" for n in range(OF_ADDRESS_MAX)]
    assert len(order) == 1001
    assert not checks._by_address
    assert not checks._asked
