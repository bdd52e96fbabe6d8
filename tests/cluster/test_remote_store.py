"""A store that another process serves: the port's contract, and what becomes of both sides."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroad.cluster.remote import RemoteStore
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Event, Put, Store
from postroad.cluster.store_address import SocketAddress
from postroad.cluster.store_server import CALLS_MAX, StoreServer
from postroad.errors import HistoryCompacted, LeaseLost, StoreUnavailable
from tests.cluster.store_contract import LEASE_MS, Elapse, StoreContract, keys, next_events, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sock"


@pytest.fixture
async def owned(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """The store that the server serves."""
    opened = await SqliteStore.open(tmp_path / "coordination.sqlite")
    yield opened
    await opened.close()


@pytest.fixture
async def server(owned: Store, path: Path) -> AsyncIterator[StoreServer]:
    opened = await StoreServer.open(owned, path)
    yield opened
    await opened.close()


@pytest.fixture
async def store(server: StoreServer, path: Path) -> AsyncIterator[RemoteStore]:
    opened = RemoteStore(SocketAddress(str(path)))
    yield opened
    await opened.close()


@pytest.fixture
async def elapse(monkeypatch: pytest.MonkeyPatch) -> Elapse:
    """Moves the loop's own clock, by which leases are timed."""
    loop = asyncio.get_running_loop()
    true_time, passed = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: true_time() + passed)

    async def pass_time(ms: int) -> None:
        nonlocal passed
        passed += ms / 1000
        for _ in range(3):  # the timer, the task that it starts, the task's first step
            await asyncio.sleep(0)

    return pass_time


class TestRemoteStore(StoreContract):
    pass


async def test_only_the_owner_may_connect(server: StoreServer, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_processes_see_what_each_other_does(store: Store, owned: Store, path: Path) -> None:
    other = RemoteStore(SocketAddress(str(path)))
    watch = other.watch("", (await store.list("")).revision)
    revision = await put(store, "a")
    assert await next_events(watch) == [Event("a", b"v", revision)]
    assert await other.get("a") == await owned.get("a")
    await other.close()


async def test_a_process_that_ends_loses_its_leases_at_once(store: Store, owned: Store) -> None:
    watch = owned.watch("", await put(store, "nodes/1", lease=await store.grant(LEASE_MS)))
    await store.close()
    events = await next_events(watch)
    assert events == [Event("nodes/1", None, events[0].revision)]


async def test_without_a_server_calls_are_refused_until_it_is_back(owned: Store, path: Path) -> None:
    store = RemoteStore(SocketAddress(str(path)))
    with pytest.raises(StoreUnavailable, match=r"No process serves .*store\.sock"):
        await store.get("a")
    first = await StoreServer.open(owned, path)
    lease = await store.grant(LEASE_MS)
    watch = store.watch("", await put(store, "a", lease=lease))
    await first.close()
    with pytest.raises(StoreUnavailable):
        await put(store, "b")
    second = await StoreServer.open(owned, path)
    with pytest.raises(LeaseLost):
        await store.keep_alive(lease)
    revision = await put(store, "c")
    assert [event.key for event in await next_events(watch)] == ["a"]
    assert await next_events(watch) == [Event("c", b"v", revision)]
    await store.close()
    await second.close()


async def test_a_call_under_way_when_the_server_ends_has_an_unknown_outcome(
    store: Store, server: StoreServer
) -> None:
    await put(store, "a")
    commits = [asyncio.create_task(put(store, f"key/{number}")) for number in range(5)]
    await asyncio.sleep(0)
    await server.close()
    for outcome in await asyncio.gather(*commits, return_exceptions=True):
        assert isinstance(outcome, int | StoreUnavailable)


async def test_a_socket_that_a_dead_process_left_is_replaced(owned: Store, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert path.exists()
    server = await StoreServer.open(owned, path)
    store = RemoteStore(SocketAddress(str(path)))
    assert await keys(store) == []
    await store.close()
    await server.close()
    assert not path.exists()


async def test_a_watch_of_forgotten_history_must_list_again(tmp_path: Path, path: Path) -> None:
    store = RemoteStore(SocketAddress(str(path)))
    for _ in range(2):
        owned = await SqliteStore.open(tmp_path / "coordination.sqlite")
        server = await StoreServer.open(owned, path)
        revision = await put(store, "a")
        await server.close()
        await owned.close()
    owned = await SqliteStore.open(tmp_path / "coordination.sqlite")
    server = await StoreServer.open(owned, path)
    await put(store, "a")
    with pytest.raises(HistoryCompacted):
        await next_events(store.watch("", revision - 1))
    await store.close()
    await server.close()
    await owned.close()


async def test_many_calls_at_once_are_all_answered(store: Store) -> None:
    puts = [put(store, f"key/{number}") for number in range(3 * CALLS_MAX)]
    assert len(set(await asyncio.gather(*puts))) == 3 * CALLS_MAX


async def test_a_reader_who_is_slow_holds_up_nobody(store: Store) -> None:
    slow = store.watch("", (await store.list("")).revision)
    assert (await asyncio.gather(next_events(slow), put(store, "first")))[0][0].key == "first"
    for number in range(40):
        assert await store.commit([], [Put("a", bytes(100_000)), Put("b", str(number).encode())])
    for number in range(40):
        events = await next_events(slow)
        assert events[1].value == str(number).encode()
