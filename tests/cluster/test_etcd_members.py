"""The etcd adapter on three real members, some of which stop, are killed or fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from postroad.cluster import etcd_messages as messages
from postroad.cluster.etcd import EtcdStore
from postroad.cluster.etcd_gateway import EtcdGateway, NoAnswer
from postroad.cluster.store import Event, Store
from postroad.cluster.store_address import EtcdAddress, parse
from postroad.errors import StoreUnavailable
from postroad.testing.etcd import Etcd, etcd
from tests.cluster.store_contract import next_events, put

LEASE_MS = 4_000
KEEP_ALIVE_S = 0.5
BOUNDED_S = 30.0  # a commit gives up after 2 s; a busy machine is slower


@pytest.fixture(scope="module")
def cluster() -> Iterator[Etcd]:
    with etcd(members=3) as running:
        yield running


@pytest.fixture
def members(cluster: Etcd) -> Iterator[Etcd]:
    yield cluster
    for member in cluster.members:
        if member.is_running:
            member.resume()
    cluster.start()


@pytest.fixture
async def store(members: Etcd, request: pytest.FixtureRequest) -> AsyncIterator[EtcdStore]:
    address = parse(members.url(f"/{request.node.name}"))
    assert isinstance(address, EtcdAddress)
    opened = EtcdStore(address)
    yield opened
    await opened.close()


async def put_in_the_end(store: Store, key: str) -> int:
    """Put the key as often as it takes; a put that is not known to have happened may have."""
    async with asyncio.timeout(120):
        while True:
            try:
                return await put(store, key)
            except StoreUnavailable:
                continue


async def arrives(events: AsyncIterator[list[Event]], revision: int) -> None:
    """Read on until the revision has come."""
    while (await next_events(events))[0].revision < revision:
        pass


@asynccontextmanager
async def kept_alive(store: Store) -> AsyncIterator[None]:
    """A lease that is kept alive as a node does it; it must not be lost."""
    lease = await store.grant(LEASE_MS)
    await put(store, "leased", lease=lease)

    async def keep() -> None:
        while True:
            try:
                await store.keep_alive(lease)
            except StoreUnavailable:
                continue
            await asyncio.sleep(KEEP_ALIVE_S)

    keeping = asyncio.create_task(keep())
    yield
    assert not keeping.done(), keeping.exception()
    keeping.cancel()
    async with asyncio.timeout(60):
        await store.keep_alive(lease)
    assert await store.get("leased") is not None


async def test_the_loss_of_a_member_costs_nothing(members: Etcd, store: Store) -> None:
    leader = members.leader()
    follower = next(member for member in members.members if member is not leader)
    async with kept_alive(store):
        watch = store.watch("", await put(store, "a"))
        follower.kill()
        await arrives(watch, await put_in_the_end(store, "b"))


async def test_the_loss_of_the_leader_costs_an_election(members: Etcd, store: Store) -> None:
    async with kept_alive(store):
        watch = store.watch("", await put(store, "a"))
        members.leader().kill()
        await arrives(watch, await put_in_the_end(store, "b"))


async def test_a_member_that_falls_silent_is_left(members: Etcd, store: Store) -> None:
    """The first member serves the watch as long as it answers."""
    async with kept_alive(store):
        watch = store.watch("", await put(store, "a"))
        revision = await put(store, "b")
        assert await next_events(watch) == [Event("b", b"v", revision)]
        waiting = asyncio.create_task(next_events(watch))
        await asyncio.sleep(0)
        members.members[0].pause()
        revision = await put_in_the_end(store, "c")
        assert (await waiting)[0].key == "c"


async def test_a_member_without_a_leader_ends_its_watches(members: Etcd) -> None:
    """One that is cut off from the others would else be silent for ever, though it is alive."""
    gateway = EtcdGateway([member.endpoint for member in members.members])
    async with asyncio.timeout(60):
        async with gateway.watch(0, messages.watch(b"/a/", b"/a0", 1), open_s=30) as stream:
            for member in members.members[1:]:
                member.pause()
            with pytest.raises(NoAnswer, match="ended the watch"):
                await stream.next()
    await gateway.close()


@pytest.mark.slow
async def test_without_a_quorum_commits_fail_in_time_and_the_rest_survives(
    members: Etcd, store: Store
) -> None:
    async with kept_alive(store):
        watch = store.watch("", await put(store, "a"))
        for member in members.members[:2]:
            member.kill()
        async with asyncio.timeout(BOUNDED_S):
            with pytest.raises(StoreUnavailable):
                await put(store, "b")
            ended = asyncio.get_running_loop().time() + LEASE_MS / 1000
            while asyncio.get_running_loop().time() < ended:
                with pytest.raises(StoreUnavailable):
                    await store.list("")
        await asyncio.to_thread(members.start)
        await arrives(watch, await put_in_the_end(store, "c"))


@pytest.mark.slow
async def test_a_restart_of_all_members_loses_nothing(members: Etcd, store: Store) -> None:
    async with kept_alive(store):
        watch = store.watch("", await put(store, "a"))
        for member in members.members:
            member.kill()
        async with asyncio.timeout(BOUNDED_S):
            with pytest.raises(StoreUnavailable):
                await store.list("")
        await asyncio.to_thread(members.start)
        await arrives(watch, await put_in_the_end(store, "b"))
