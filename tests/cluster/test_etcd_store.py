"""The etcd adapter on one real member: the port's contract, and what only etcd can do."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from postroad.cluster import etcd as etcd_store
from postroad.cluster.etcd import PAGE_KEYS, EtcdStore
from postroad.cluster.store import OPERATIONS_MAX, PROGRESS, VALUE_BYTES_MAX, Compare, Event, Put, Store
from postroad.cluster.store_address import EtcdAddress, parse
from postroad.errors import HistoryCompacted, StoreUnavailable
from postroad.testing.etcd import Etcd, etcd
from tests.cluster.lossy_proxy import LossyProxy
from tests.cluster.store_contract import Elapse, StoreContract, keys, next_events, put, reach

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Etcd]:
    with etcd() as running:
        yield running


@pytest.fixture
def address(server: Etcd) -> EtcdAddress:
    """A prefix that no other test uses."""
    parsed = parse(server.url(f"/test/{next(_numbers)}"))
    assert isinstance(parsed, EtcdAddress)
    return parsed


@pytest.fixture
async def store(address: EtcdAddress) -> AsyncIterator[EtcdStore]:
    opened = EtcdStore(address)
    yield opened
    await opened.close()


@pytest.fixture
async def neighbour(server: Etcd) -> AsyncIterator[EtcdStore]:
    """Another cluster in the same etcd."""
    parsed = parse(server.url(f"/neighbour/{next(_numbers)}"))
    assert isinstance(parsed, EtcdAddress)
    opened = EtcdStore(parsed)
    yield opened
    await opened.close()


@pytest.fixture
def elapse() -> Elapse:
    """Nobody can move etcd's clock."""

    async def wait_for_nothing(ms: int) -> None:
        pass

    return wait_for_nothing


class TestEtcdStore(StoreContract):
    ends_after_ms = 3000  # etcd's shortest is 2 s, and whoever commits with it must be faster

    @pytest.fixture(autouse=True)
    def be_patient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """None of these is about time-outs, and a machine under load is slow."""
        for name in ("COMMIT_S", "READ_S", "KEEP_ALIVE_S"):
            monkeypatch.setattr(etcd_store, name, 60.0)


# --- an etcd that others use too -----------------------------------------------------------------


async def test_neighbours_see_nothing_of_each_other(store: Store, neighbour: Store) -> None:
    watch = store.watch("", (await store.list("")).revision)
    await put(neighbour, "a", b"theirs")
    assert await store.get("a") is None
    assert await keys(store) == []
    revision = await put(store, "a", b"ours")
    assert await next_events(watch) == [Event("a", b"ours", revision)]
    assert await neighbour.get("a") is not None


async def test_a_watch_reaches_a_revision_that_is_a_neighbours(store: Store, neighbour: Store) -> None:
    watch = store.watch("", await put(store, "a"))
    await put(neighbour, "b")
    snapshot = await store.list("")
    events = await asyncio.wait_for(anext(watch), 60)
    assert events == [Event(PROGRESS, None, events[0].revision)]
    assert events[0].revision > snapshot.revision
    assert await keys(store) == ["a"]


async def test_a_watch_that_begins_later_reaches_it_too(store: Store, neighbour: Store) -> None:
    after = await put(store, "a")
    await put(neighbour, "b")
    snapshot = await store.list("")
    await reach(store.watch("nothing/", after), snapshot.revision)


# --- limits --------------------------------------------------------------------------------------


async def test_the_largest_commit_is_taken(store: Store) -> None:
    value = b"x" * (VALUE_BYTES_MAX // OPERATIONS_MAX)
    names = [f"key/{number:03d}" for number in range(OPERATIONS_MAX)]
    assert await store.commit([Compare(name, 0) for name in names], [Put(name, value) for name in names])
    assert await keys(store) == names


async def test_a_larger_commit_is_our_own_mistake(store: Store) -> None:
    many = [Put(f"key/{number}", b"") for number in range(OPERATIONS_MAX + 1)]
    with pytest.raises(AssertionError, match="129 operations"):
        await store.commit([], many)
    with pytest.raises(AssertionError, match="bytes of values"):
        await store.commit([], [Put("a", b"x" * (VALUE_BYTES_MAX + 1))])


async def test_a_long_list_is_of_one_revision(store: Store) -> None:
    names = [f"key/{number:04d}" for number in range(PAGE_KEYS + 100)]
    for start in range(0, len(names), 100):
        revision = await store.commit([], [Put(name, b"1") for name in names[start : start + 100]])
    listing = asyncio.create_task(store.list("key/"))
    changing = [store.commit([], [Put(name, b"2")]) for name in (names[0], names[-1])]
    await asyncio.gather(*changing)
    snapshot = await listing
    assert [entry.key for entry in snapshot.entries] == names
    assert revision is not None
    assert max(entry.revision for entry in snapshot.entries) <= snapshot.revision
    after = [e async for e in _until(store, snapshot.revision)]
    changed = {event.key for event in after}
    values = {entry.key: entry.value for entry in snapshot.entries}
    assert all((values[name] == b"1") == (name in changed) for name in (names[0], names[-1]))


async def _until(store: Store, after: int) -> AsyncIterator[Event]:
    """What has changed since the revision."""
    last = await put(store, "last")
    async for events in store.watch("", after):
        for event in events:
            yield event
        if events[0].revision >= last:
            return


# --- history -------------------------------------------------------------------------------------


async def test_a_watch_from_before_a_compaction_must_list_again(server: Etcd, store: Store) -> None:
    first = await put(store, "a", b"1")
    await put(store, "a", b"2")
    last = await put(store, "a", b"3")
    server.members[0].ask("kv/compaction", {"revision": str(last)})
    with pytest.raises(HistoryCompacted):
        await next_events(store.watch("", first))
    snapshot = await store.list("")
    watch = store.watch("", snapshot.revision)
    revision = await put(store, "b")
    assert await next_events(watch) == [Event("b", b"v", revision)]


async def test_a_list_goes_on_after_a_compaction(server: Etcd, store: Store) -> None:
    last = await put(store, "a")
    server.members[0].ask("kv/compaction", {"revision": str(last)})
    assert await keys(store) == ["a"]


# --- leases --------------------------------------------------------------------------------------


async def test_keeping_a_lease_alive_gives_it_its_whole_time_again(server: Etcd, store: Store) -> None:
    def left_s() -> int:
        return int(server.members[0].ask("lease/timetolive", {"ID": str(lease)})["TTL"])

    lease = await store.grant(60_000)
    short = await store.grant(3_000)
    await next_events(store.watch("", await put(store, "a", lease=short)))  # three seconds have passed
    before = left_s()
    await store.keep_alive(lease)
    assert before < left_s()


# --- answers that are lost -----------------------------------------------------------------------


@pytest.fixture
async def proxy(address: EtcdAddress) -> AsyncIterator[LossyProxy]:
    async with LossyProxy.before(address.endpoints[0]) as running:
        yield running


@pytest.fixture
async def cut_off(proxy: LossyProxy, address: EtcdAddress) -> AsyncIterator[EtcdStore]:
    """The same store by way of the proxy."""
    opened = EtcdStore(EtcdAddress((proxy.endpoint,), address.prefix))
    yield opened
    await opened.close()


async def test_a_commit_whose_answer_is_lost_is_sent_once(
    store: Store, cut_off: Store, proxy: LossyProxy
) -> None:
    before = await put(cut_off, "a", b"1")
    proxy.lose_answers()
    with pytest.raises(StoreUnavailable):
        await cut_off.commit([], [Put("a", b"2")])
    watch = store.watch("", before)
    revision = await put(store, "last")
    happened = await next_events(watch)
    assert happened == [Event("a", b"2", happened[0].revision)]
    assert await next_events(watch) == [Event("last", b"v", revision)]


async def test_a_commit_that_could_not_be_sent_goes_to_another_member(
    address: EtcdAddress, store: Store
) -> None:
    twice = EtcdStore(EtcdAddress(("127.0.0.1:1", *address.endpoints), address.prefix))
    revision = await put(twice, "a")
    assert await store.get("a") == ("a", b"v", revision)
    await twice.close()


async def test_a_read_whose_answer_is_lost_is_asked_again(
    cut_off: Store, proxy: LossyProxy, store: Store
) -> None:
    await put(store, "a")
    proxy.lose_answers(1)
    assert await keys(cut_off) == ["a"]


async def test_a_watch_whose_connection_ends_goes_on_where_it_was(
    cut_off: Store, proxy: LossyProxy, store: Store
) -> None:
    watch = cut_off.watch("", (await store.list("")).revision)
    for number in range(5):
        waiting = asyncio.create_task(next_events(watch))
        revision = await put(store, "a", str(number).encode())
        assert await waiting == [Event("a", str(number).encode(), revision)]
        proxy.end_connections()


async def test_a_watch_is_moved_when_its_member_is_silent(
    address: EtcdAddress, proxy: LossyProxy, store: Store
) -> None:
    both = EtcdStore(EtcdAddress((proxy.endpoint, *address.endpoints), address.prefix))
    watch = both.watch("", await put(both, "a"))
    revision = await put(both, "b")
    assert await next_events(watch) == [Event("b", b"v", revision)]
    waiting = asyncio.create_task(next_events(watch))
    proxy.lose_answers()
    revision = await put(store, "c")
    assert (await both.list("")).revision >= revision  # which says how far the watch should be
    assert await waiting == [Event("c", b"v", revision)]
    await both.close()


async def test_something_else_than_etcd_is_said_to_be_that() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        endpoint = f"127.0.0.1:{other.sockets[0].getsockname()[1]}"
        store = EtcdStore(EtcdAddress((endpoint,), "/x/"))
        with pytest.raises(StoreUnavailable, match="does not answer as etcd's JSON gateway does"):
            await store.commit([], [])
        await store.close()


async def test_nobody_who_listens_is_said_to_be_that() -> None:
    store = EtcdStore(EtcdAddress(("127.0.0.1:1", "localhost:1"), "/x/"))
    with pytest.raises(StoreUnavailable, match="can't be reached"):
        await store.commit([], [])
    await store.close()
