"""The SQLite adapter: the port's contract, and what only a file can do."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.sqlite_file import APPLICATION_ID
from postroad.cluster.store import Put, Store
from postroad.errors import ConfigurationError, HistoryCompacted, StorageFailed, StoreUnavailable
from tests.cluster.store_contract import LEASE_MS, Elapse, StoreContract, keys, next_events, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "coordination.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path)
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


class TestSqliteStore(StoreContract):
    pass


# --- the file ------------------------------------------------------------------------------------


async def test_what_was_committed_is_there_after_a_restart(path: Path) -> None:
    first = await SqliteStore.open(path)
    revision = await put(first, "a", b"1")
    await first.close()
    second = await SqliteStore.open(path)
    assert await second.get("a") == ("a", b"1", revision)
    assert await put(second, "b") == revision + 1
    await second.close()


async def test_leased_keys_do_not_outlive_the_process(path: Path) -> None:
    first = await SqliteStore.open(path)
    revision = await first.commit([], [Put("stays", b"1"), Put("nodes/1", b"2", await first.grant(60_000))])
    await first.close()
    second = await SqliteStore.open(path)
    snapshot = await second.list("")
    assert [entry.key for entry in snapshot.entries] == ["stays"]
    assert revision is not None
    assert snapshot.revision == revision + 1
    await second.close()


async def test_only_the_owner_may_read_it(store: Store, path: Path) -> None:
    await put(store, "a")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


async def test_permissions_that_are_too_wide_are_narrowed(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
    path.chmod(0o644)
    await (await SqliteStore.open(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_second_process_is_kept_out_with_a_clear_message(store: Store, path: Path) -> None:
    await put(store, "a")
    with pytest.raises(ConfigurationError, match="in use by another process"):
        await SqliteStore.open(path)
    assert await keys(store) == ["a"]


async def test_a_database_of_another_program_is_refused_and_untouched(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(ConfigurationError, match="database of another program"):
        await SqliteStore.open(foreign)
    assert foreign.read_bytes() == before


async def test_a_file_of_a_newer_layout_is_refused(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConfigurationError, match="newer Postroad"):
        await SqliteStore.open(path)


async def test_a_file_that_is_no_database_is_refused_and_untouched(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(ConfigurationError, match="can't be read as a coordination store"):
        await SqliteStore.open(broken)
    assert broken.read_bytes() == b"this is no database at all" * 100


async def test_a_damaged_file_is_refused_and_untouched(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.commit([], [Put(f"topics/{number}", b"x" * 500) for number in range(100)])
    await store.close()
    content = bytearray(path.read_bytes())
    content[3 * 4096 : 5 * 4096] = b"\xa5" * (2 * 4096)
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="can't be read as a coordination store"):
        await SqliteStore.open(path)
    assert path.read_bytes() == bytes(content)


@pytest.mark.parametrize("kind", ["link", "directory"])
async def test_a_link_or_a_directory_is_refused(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "coordination.db"
    if kind == "link":
        target.symlink_to(tmp_path / "elsewhere.db")
    else:
        target.mkdir()
    with pytest.raises(ConfigurationError, match="not a regular file"):
        await SqliteStore.open(target)
    assert not (tmp_path / "elsewhere.db").exists()


async def test_the_file_says_whose_it_is(store: SqliteStore, path: Path) -> None:
    await store.close()
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID


# --- bounds and faults ---------------------------------------------------------------------------


async def test_a_commit_is_synced_before_it_is_answered(store: SqliteStore) -> None:
    """A power cut can't be had in a test; the two settings that a commit's safety rests on can be read."""
    assert await execute(store, "PRAGMA journal_mode") == ("wal",)
    assert await execute(store, "PRAGMA synchronous") == (2,)  # FULL


async def test_a_watch_that_fell_behind_is_told_to_list_again(store: Store) -> None:
    start = (await store.list("")).revision
    behind = store.watch("", start)
    for _ in range(18):
        last = await put(store, "large", b"x" * 1024 * 1024)
    with pytest.raises(HistoryCompacted, match="Changes are kept from revision"):
        await next_events(behind)
    assert (await next_events(store.watch("", last - 1)))[0].revision == last


async def test_a_watch_from_before_the_restart_is_told_to_list_again(path: Path) -> None:
    first = await SqliteStore.open(path)
    revision = await put(first, "a")
    await put(first, "a")
    await first.close()
    second = await SqliteStore.open(path)
    with pytest.raises(HistoryCompacted):
        await next_events(second.watch("", revision))
    await second.close()


async def test_a_full_disk_refuses_the_commit_and_heals_without_a_restart(store: SqliteStore) -> None:
    revision = await put(store, "a")
    await limit_pages(store, 10)
    with pytest.raises(StorageFailed, match="disk is full"):
        await put(store, "large", b"x" * 200_000)
    assert await keys(store) == ["a"]
    await limit_pages(store, 1_000_000)
    assert await put(store, "large", b"x" * 200_000) == revision + 1


async def test_a_lease_whose_end_met_a_full_disk_is_ended_later(store: SqliteStore, elapse: Elapse) -> None:
    lease = await store.grant(LEASE_MS)
    watch = store.watch("", await put(store, "a", lease=lease))
    await execute(store, "CREATE TABLE filler (bytes BLOB)")
    fill = "INSERT INTO filler VALUES (zeroblob(200000));"
    await execute(store, f"CREATE TRIGGER fill BEFORE DELETE ON entries BEGIN {fill} END")
    await limit_pages(store, 10)
    await elapse(LEASE_MS + 1000)
    assert await keys(store) == ["a"]
    await limit_pages(store, 1_000_000)
    await elapse(LEASE_MS)
    assert (await next_events(watch))[0].value is None


async def test_a_disk_error_is_final_until_the_node_is_restarted(path: Path) -> None:
    store = await SqliteStore.open(path)
    await put(store, "a", b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StoreUnavailable, match="must be restarted"):
            await put(store, "a", b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(StoreUnavailable, match="must be restarted"):
        await store.get("a")
    await store.close()
    again = await SqliteStore.open(path)
    entry = await again.get("a")
    assert entry is not None
    assert entry.value == b"before"
    await again.close()


async def limit_pages(store: SqliteStore, pages: int) -> None:
    """SQLite's own limit on the file's size, which fails just as a full disk does."""
    await execute(store, f"PRAGMA max_page_count = {pages}")


async def execute(store: SqliteStore, statement: str) -> Any:
    return await store._run(lambda: store._connection.execute(statement).fetchone())


WRITER = """
import asyncio, sys
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Put

async def main():
    store = await SqliteStore.open(sys.argv[1])
    number = int(sys.argv[2])
    while True:
        await store.commit([], [Put(f"key/{number:06d}", b"x" * 100), Put("last", str(number).encode())])
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


async def test_kill_9_loses_no_acknowledged_commit_and_tears_none(path: Path) -> None:
    done = 0
    for wait_for in (3, 40, 15):
        arguments = [sys.executable, "-c", WRITER, str(path), str(done)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(wait_for):
                acknowledged = int(writer.stdout.readline())
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        store = await SqliteStore.open(path)
        last = await store.get("last")
        assert last is not None
        found = int(last.value)
        assert found in (acknowledged, acknowledged + 1)
        assert await keys(store, "key/") == [f"key/{number:06d}" for number in range(found + 1)]
        await store.close()
        done = found + 1


async def test_commits_that_a_kill_left_in_the_log_are_in_the_database_before_others_follow(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    """The log may be one whose sync failed; what SQLite adds to it would be lost with it in a power cut."""
    await put(store, "a", b"1")
    killed = tmp_path / "killed" / path.name
    killed.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
    assert os.path.getsize(f"{killed}-wal") > 0
    again = await SqliteStore.open(killed)
    try:
        assert os.path.getsize(f"{killed}-wal") == 0
        assert await keys(again, "") == ["a"]
    finally:
        await again.close()


# --- checksums


OLD_LAYOUT = """
CREATE TABLE entries (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL, lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 7);
INSERT INTO entries VALUES (CAST('topics/orders' AS BLOB), CAST('{"name": "orders"}' AS BLOB), 7, 0);
PRAGMA application_id = 1349743698;
PRAGMA user_version = 1;
"""


async def test_a_flipped_bit_of_an_entry_is_refused_by_name_and_nothing_is_changed(path: Path) -> None:
    store = await SqliteStore.open(path)
    await put(store, "topics/orders", b'{"name": "orders", "partitions": 3}')
    await store.close()
    whole = path.read_bytes()
    first, last = whole.index(b"topics/orders"), whole.index(b"partitions")
    for position in range(first + len(b"topics/"), last):
        content = bytearray(whole)
        content[position] ^= 1 << position % 7
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match="damaged"):
            await SqliteStore.open(path)
        assert path.read_bytes() == bytes(content)
    path.write_bytes(whole)
    store = await SqliteStore.open(path)
    assert await keys(store) == ["topics/orders"]
    await store.close()


async def test_an_entry_that_is_damaged_while_the_store_is_open_is_not_answered(path: Path) -> None:
    store = await SqliteStore.open(path)
    await put(store, "topics/orders", b"as it was")
    await store._call(
        lambda: store._connection.execute("UPDATE entries SET value = CAST('as it is' AS BLOB)")
    )
    with pytest.raises(StoreUnavailable, match="topics/orders"):
        await store.get("topics/orders")
    await store.close()


async def test_a_counter_of_revisions_that_has_gone_back_is_refused(path: Path) -> None:
    store = await SqliteStore.open(path)
    await put(store, "a")
    await put(store, "b")
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE counters SET value = value - 1")
    connection.close()
    with pytest.raises(ConfigurationError, match="counter of revisions"):
        await SqliteStore.open(path)


async def test_a_store_of_the_layout_before_checksums_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(OLD_LAYOUT)
    connection.close()
    for _ in range(2):
        store = await SqliteStore.open(path)
        assert await store.get("topics/orders") == ("topics/orders", b'{"name": "orders"}', 7)
        await store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        connection.execute('UPDATE entries SET value = CAST(\'{"name": "0rders"}\' AS BLOB)')
    connection.close()
    with pytest.raises(ConfigurationError, match="topics/orders"):
        await SqliteStore.open(path)


async def test_full_disk_leaves_a_store_of_the_layout_before_as_it_was_and_is_called_by_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir(exist_ok=True)
    rows = [(b"topics/%d" % number, b"x" * 100, 7, 0) for number in range(2000)]
    with sqlite3.connect(path) as connection:
        connection.executescript(OLD_LAYOUT)
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
    connection.close()

    class Full(sqlite3.Connection):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            self.execute("PRAGMA max_page_count = 1")  # it is never below what there is

    connect = sqlite3.connect
    with monkeypatch.context() as full:
        full.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, factory=Full, **more))
        with pytest.raises(ConfigurationError, match=r"disk is full.*unchanged.*Make room"):
            await SqliteStore.open(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
    store = await SqliteStore.open(path)
    assert len((await store.list("topics/")).entries) == 2001
    await store.close()
