"""What every adapter of the Store port promises; `StoreContract` is inherited by the tests of each.

An adapter's test class provides two fixtures: `store`, an empty open store, and `elapse`, a coroutine
function that lets milliseconds pass for its leases, by a clock that can be moved. Where there is none, leases
end in their own time: `ends_after_ms` is then short, and `elapse` need not wait, since the tests wait for
what the lease's end brings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from postroad.cluster.store import ABSENT, PROGRESS, Compare, Delete, Event, Events, Put, Store
from postroad.errors import LeaseLost, StoreUnavailable

Elapse = Callable[[int], Awaitable[None]]

# Far more than any step of a test takes: only what `elapse` lets pass ends a lease.
LEASE_MS = 60_000


async def put(store: Store, key: str, value: bytes = b"v", lease: int = 0) -> int:
    revision = await store.commit([], [Put(key, value, lease)])
    assert revision is not None
    return revision


async def keys(store: Store, prefix: str = "") -> list[str]:
    return [entry.key for entry in (await store.list(prefix)).entries]


async def next_events(watch: AsyncIterator[Events]) -> Events:
    """The next events that are no mark of progress."""
    async with asyncio.timeout(60):
        while True:
            events = await anext(watch)
            if events[0].key != PROGRESS:
                return events


async def reach(watch: AsyncIterator[Events], revision: int) -> None:
    """Read the watch until it has reached the revision."""
    async with asyncio.timeout(60):
        async for events in watch:
            if events[0].revision >= revision:
                return


class StoreContract:
    ends_after_ms = LEASE_MS  # of leases that are to end

    # --- commits -------------------------------------------------------------------------------

    async def test_a_commit_raises_the_revision_and_stamps_its_keys(self, store: Store) -> None:
        before = (await store.list("")).revision
        revision = await store.commit([], [Put("a", b"1"), Put("b", b"2")])
        assert revision is not None
        assert revision > before
        assert await store.get("a") == ("a", b"1", revision)
        assert await store.get("b") == ("b", b"2", revision)

    async def test_a_key_that_was_never_written_is_absent(self, store: Store) -> None:
        assert await store.get("a") is None
        assert await store.commit([Compare("a", ABSENT)], [Put("a", b"1")]) is not None

    async def test_a_failed_compare_changes_nothing_at_all(self, store: Store) -> None:
        revision = await put(store, "a")
        await put(store, "b")
        before = await store.list("")
        for compare in (Compare("a", ABSENT), Compare("a", revision + 1), Compare("c", revision)):
            operations: list[Put | Delete] = [Put("a", b"new"), Delete("b"), Put("d", b"new")]
            assert await store.commit([Compare("a", revision), compare], operations) is None
        assert (await store.list("")).entries == before.entries

    async def test_a_key_deleted_and_written_anew_is_not_the_same(self, store: Store) -> None:
        revision = await put(store, "a", b"same")
        await store.commit([], [Delete("a")])
        await put(store, "a", b"same")
        assert await store.commit([Compare("a", revision)], [Delete("a")]) is None

    async def test_a_commit_that_changes_nothing_is_not_seen(self, store: Store) -> None:
        revision = await put(store, "a")
        watch = store.watch("", revision)
        for compares, operations in ([], []), ([Compare("a", revision)], [Delete("absent")]):
            unchanged = await store.commit(compares, operations)
            assert unchanged is not None
            assert unchanged >= revision
        last = await put(store, "b")
        assert await next_events(watch) == [Event("b", b"v", last)]

    async def test_writing_the_same_value_is_a_change(self, store: Store) -> None:
        revision = await put(store, "a", b"same")
        assert await put(store, "a", b"same") > revision

    async def test_values_are_any_bytes(self, store: Store) -> None:
        for value in (b"", bytes(range(256)), b"x" * 100_000):
            await put(store, "a", value)
            entry = await store.get("a")
            assert entry is not None
            assert entry.value == value

    async def test_of_many_who_compare_the_same_revision_one_wins(self, store: Store) -> None:
        revision = await put(store, "counter", b"0")
        attempts = [
            store.commit([Compare("counter", revision)], [Put("counter", str(n).encode())]) for n in range(20)
        ]
        won = [result for result in await asyncio.gather(*attempts) if result is not None]
        assert len(won) == 1
        assert won[0] > revision

    # --- lists ---------------------------------------------------------------------------------

    async def test_a_list_holds_exactly_the_keys_with_the_prefix_in_order(self, store: Store) -> None:
        inside = ["a/", "a/1", "a/10", "a/2", "a/z", "a/é", "a/\U0010ffff"]
        await store.commit([], [Put(key, b"v") for key in (*reversed(inside), "a", "a0", "b/1", "A/1")])
        assert await keys(store, "a/") == inside
        assert await keys(store, "nothing") == []
        assert len(await keys(store)) == len(inside) + 4

    async def test_a_list_tells_the_revision_it_was_taken_at(self, store: Store) -> None:
        revision = await put(store, "a")
        assert (await store.list("other")).revision >= revision

    # --- watches -------------------------------------------------------------------------------

    async def test_a_watch_begins_after_the_revision_and_skips_nothing(self, store: Store) -> None:
        first = await put(store, "a", b"1")
        second = await put(store, "a", b"2")
        third = await store.commit([], [Delete("a")])
        assert third is not None
        watch = store.watch("", after=first)
        assert await next_events(watch) == [Event("a", b"2", second)]
        assert await next_events(watch) == [Event("a", None, third)]
        fourth = await put(store, "b", b"3")
        assert await next_events(watch) == [Event("b", b"3", fourth)]

    async def test_events_of_one_revision_come_together(self, store: Store) -> None:
        await put(store, "gone")
        snapshot = await store.list("")
        watch = store.watch("", snapshot.revision)
        revision = await store.commit([], [Put("a", b"1"), Delete("gone"), Delete("absent"), Put("b", b"2")])
        assert revision is not None
        assert sorted(await next_events(watch)) == [
            Event("a", b"1", revision),
            Event("b", b"2", revision),
            Event("gone", None, revision),
        ]

    async def test_a_watch_hears_of_its_prefix_only(self, store: Store) -> None:
        watch = store.watch("a/", (await store.list("")).revision)
        await put(store, "b/1")
        revision = await store.commit([], [Put("b/2", b"no"), Put("a/1", b"yes")])
        assert revision is not None
        assert await next_events(watch) == [Event("a/1", b"yes", revision)]

    async def test_a_watch_after_a_future_revision_waits_for_what_follows_it(self, store: Store) -> None:
        revision = await put(store, "a", b"1")
        watch = store.watch("", after=revision + 1)
        await put(store, "a", b"2")
        last = await put(store, "a", b"3")
        seen = revision + 1
        while seen < last:
            events = await next_events(watch)
            assert events[0].revision > seen
            seen = events[0].revision
        assert events == [Event("a", b"3", last)]

    async def test_a_watch_reaches_every_revision_that_was_named(self, store: Store) -> None:
        watch = store.watch("", (await store.list("")).revision)
        await put(store, "a")
        await reach(watch, (await store.list("")).revision)
        await put(store, "b")
        unchanged = await store.commit([], [Delete("absent")])
        assert unchanged is not None
        await reach(watch, unchanged)

    async def test_each_of_several_watches_hears_everything(self, store: Store) -> None:
        after = (await store.list("")).revision
        watches = [store.watch("", after) for _ in range(3)]
        heard = [asyncio.create_task(next_events(watch)) for watch in watches]
        revision = await put(store, "a", b"1")
        assert await asyncio.gather(*heard) == [[Event("a", b"1", revision)]] * 3

    async def test_a_list_and_a_watch_from_it_leave_no_gap(self, store: Store) -> None:
        async def write() -> None:
            for number in range(30):
                await put(store, f"key/{number:02d}")

        writing = asyncio.create_task(write())
        snapshot = await store.list("key/")
        seen = [entry.key for entry in snapshot.entries]
        watch = store.watch("key/", snapshot.revision)
        while len(seen) < 30:
            seen += [event.key for event in await next_events(watch)]
        await writing
        assert seen == [f"key/{number:02d}" for number in range(30)]

    async def test_a_commit_whose_caller_was_cancelled_is_seen_if_it_happened(self, store: Store) -> None:
        snapshot = await store.list("")
        cancelled = asyncio.create_task(put(store, "a"))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        last = await put(store, "last")
        watch, revision = store.watch("", snapshot.revision), snapshot.revision
        while revision < last:
            events = await next_events(watch)
            assert len({event.revision for event in events}) == 1
            assert events[0].revision > revision
            revision = events[0].revision
        assert events == [Event("last", b"v", last)]

    async def test_a_watch_ends_when_the_store_is_closed(self, store: Store) -> None:
        watch = store.watch("", (await store.list("")).revision)
        waiting = asyncio.create_task(next_events(watch))
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(StopAsyncIteration):
            await waiting

    # --- leases --------------------------------------------------------------------------------

    async def test_a_lease_that_runs_out_takes_its_keys_in_one_revision(
        self, store: Store, elapse: Elapse
    ) -> None:
        lease = await store.grant(self.ends_after_ms)
        await put(store, "stays")
        revision = await store.commit([], [Put("a", b"1", lease), Put("b", b"2", lease)])
        assert revision is not None
        watch = store.watch("", revision)
        await elapse(self.ends_after_ms + 1000)
        ended = sorted(await next_events(watch))
        assert ended == [Event("a", None, ended[0].revision), Event("b", None, ended[0].revision)]
        assert ended[0].revision > revision
        assert await keys(store) == ["stays"]

    async def test_a_lease_that_is_kept_alive_keeps_its_keys(self, store: Store, elapse: Elapse) -> None:
        lease = await store.grant(LEASE_MS)
        await put(store, "a", lease=lease)
        for _ in range(3):
            await elapse(LEASE_MS * 2 // 3)
            await store.keep_alive(lease)
        assert await keys(store) == ["a"]

    async def test_a_lease_that_has_ended_is_refused(self, store: Store, elapse: Elapse) -> None:
        lease = await store.grant(self.ends_after_ms)
        watch = store.watch("", await put(store, "a", lease=lease))
        await elapse(self.ends_after_ms + 1000)
        await next_events(watch)
        with pytest.raises(LeaseLost):
            await store.keep_alive(lease)
        with pytest.raises(LeaseLost):
            await store.commit([], [Put("b", b"1"), Put("c", b"2", lease)])
        assert await keys(store) == []

    async def test_a_revoked_lease_takes_its_keys_at_once(self, store: Store) -> None:
        lease, other = await store.grant(LEASE_MS), await store.grant(LEASE_MS)
        await store.commit([], [Put("a", b"1", lease), Put("b", b"2", other)])
        await store.revoke(lease)
        await store.revoke(lease)
        assert await keys(store) == ["b"]
        with pytest.raises(LeaseLost):
            await store.keep_alive(lease)

    async def test_writing_a_key_without_its_lease_frees_it(self, store: Store) -> None:
        lease = await store.grant(LEASE_MS)
        await put(store, "a", lease=lease)
        await put(store, "a")
        await store.revoke(lease)
        assert await keys(store) == ["a"]

    async def test_a_key_belongs_to_the_lease_that_last_wrote_it(self, store: Store) -> None:
        first, second = await store.grant(LEASE_MS), await store.grant(LEASE_MS)
        await put(store, "a", lease=first)
        await put(store, "a", lease=second)
        await store.revoke(first)
        assert await keys(store) == ["a"]
        await store.revoke(second)
        assert await keys(store) == []

    # --- the end -------------------------------------------------------------------------------

    async def test_close_waits_for_what_is_under_way_and_may_be_repeated(self, store: Store) -> None:
        commits = [asyncio.create_task(put(store, f"key/{number}")) for number in range(5)]
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert len(await asyncio.gather(*commits)) == 5

    async def test_a_closed_store_refuses(self, store: Store) -> None:
        await store.close()
        for refused in (store.get("a"), store.list(""), store.commit([], []), store.grant(1)):
            with pytest.raises(StoreUnavailable):
                await refused
