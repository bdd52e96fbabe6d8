"""The simulated drive as a process sees it: the port, its errors, and the end of processes."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from postroad.log.disk import Disk, LockHeld
from simulator.disk import Drive
from simulator.paged_file import PAGE_BYTES
from simulator.process import Process
from simulator.world import World
from tests.simulator.drives import create, cut_power, kill


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as world:
        yield world


@pytest.fixture
def drive(world: World) -> Drive:
    return Drive(world, "one")


@pytest.fixture
def disk(world: World, drive: Drive) -> Disk:
    disk = drive.mount(Process(world, "one"))
    disk.make_directory("d")
    return disk


def test_it_is_a_disk_as_the_real_one_is(drive: Drive, disk: Disk) -> None:
    disk.make_directory("/a/b")
    disk.make_directory("/a/b")
    assert (disk.list("/a"), disk.list("/a/."), disk.list("none")) == (["b"], ["b"], [])
    with pytest.raises(FileNotFoundError):
        disk.open("/a/b/x")
    with pytest.raises(FileNotFoundError):
        disk.open("/none/x", create=True)
    with pytest.raises(IsADirectoryError):
        disk.open("/a/b")
    file = disk.open("/a/b/x", create=True)
    file.append([b"one", memoryview(b"two"), bytearray(b"three")])
    file.write(1, b"NN")
    assert (file.read(0, 100), file.read(3, 3), file.read(11, 5)) == (b"oNNtwothree", b"two", b"")
    file.truncate(6)
    file.sync()
    assert (file.size(), disk.open("/a/b/x").size()) == (6, 6)
    disk.rename("/a/b/x", "/a/b/y")
    for new in (b"newer", b"new"):
        disk.replace("/a/b/z", new)
    assert disk.list("/a/b") == ["y", "z"]
    assert drive.content("/a/b/z") == b"new"
    assert [disk.unlink("/a/b/y"), disk.unlink("/a/b/y")] == [True, False]
    with pytest.raises(IsADirectoryError):
        disk.unlink("/a/b")
    for _ in range(2):
        disk.remove("/a/b")
    assert disk.list("/a") == []
    assert 0 < disk.free_bytes() <= disk.total_bytes()


def test_operations_take_time_and_stand_in_the_trace(world: World, drive: Drive) -> None:
    process = Process(world, "two")
    disk, file = drive.mount(process), drive.mount(process).open("x", create=True)
    for operation in (
        partial(file.append, [b"x"]),
        partial(file.read, 0, 1),
        file.sync,
        partial(file.truncate, 0),
        partial(disk.open, "x"),
        partial(disk.list, "."),
        partial(disk.rename, "x", "y"),
        partial(disk.sync_directory, "."),
        partial(disk.remove, "y"),
    ):
        before, lines = process.loop.time(), world.trace.count
        operation()
        assert process.loop.time() > before
        assert world.trace.count > lines


def test_a_killed_process_has_no_disk_any_more_and_the_next_finds_what_it_wrote(
    drive: Drive, disk: Disk
) -> None:
    file, lock = disk.open("d/x", create=True), disk.lock("d/lock")
    file.append([b"written"])
    following = kill(drive)
    assert following.open("d/x").read(0, 9) == b"written"
    for use in (
        partial(file.append, [b"more"]),
        file.sync,
        partial(disk.list, "d"),
        disk.free_bytes,
        lock.close,
    ):
        with pytest.raises(SystemExit):
            use()
    assert drive.content("d/x") == b"written"


def test_a_lock_is_held_until_it_is_closed_or_its_process_ends(
    world: World, drive: Drive, disk: Disk
) -> None:
    lock = disk.lock("d/lock")
    other = drive.mount(Process(world, "one", "other"))
    for refused in (disk, other):
        with pytest.raises(LockHeld) as error:
            refused.lock("d/lock")
        assert error.value.holder == "one"
    lock.close()
    other.lock("d/lock")
    kill(drive).lock("d/lock")
    cut_power(drive).lock("d/lock")


def test_pages_of_a_failed_sync_are_read_from_the_disk_once_the_cache_drops_them(
    drive: Drive, disk: Disk
) -> None:
    create(disk, "d/x", b"synced")
    file = disk.open("d/x")
    file.append([b" lost" * PAGE_BYTES])
    drive.error_rates["sync"] = 1.0
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()
    before = drive.content("d/x")
    assert before == b"synced" + b" lost" * PAGE_BYTES
    drive.drop_caches()
    after = drive.content("d/x")
    assert after != before
    assert len(after) == len(before)
    assert after[:6] == b"synced"
    file.append([b"dirty pages stay"])
    drive.drop_caches()
    assert drive.content("d/x").endswith(b"dirty pages stay")


def test_syncs_stall_and_everything_slows_down_on_demand(world: World, drive: Drive, disk: Disk) -> None:
    file, loop = disk.open("d/x", create=True), world.processes[0].loop
    drive.stall_rate, drive.stall_s = 1.0, (5.0, 6.0)
    before = loop.time()
    file.sync()
    assert 5.0 < loop.time() - before < 7.0
    drive.stall_rate, drive.slowness = 0.0, 1e6
    before = loop.time()
    file.append([b"x"])
    assert loop.time() - before >= 2.0


@pytest.mark.parametrize(
    ("operation", "use"),
    [
        ("open", lambda disk: disk.open("d/x")),
        ("create", lambda disk: disk.open("d/y", create=True)),
        ("read", lambda disk: disk.open("d/x").read(0, 1)),
        ("write", lambda disk: disk.open("d/x").append([b"more"])),
        ("truncate", lambda disk: disk.open("d/x").truncate(1)),
        ("sync", lambda disk: disk.open("d/x").sync()),
        ("list", lambda disk: disk.list("d")),
        ("make_directory", lambda disk: disk.make_directory("d/e")),
        ("remove", lambda disk: disk.remove("d/x")),
        ("remove", lambda disk: disk.unlink("d/x")),
        ("rename", lambda disk: disk.rename("d/x", "d/y")),
        ("rename", lambda disk: disk.replace("d/x", b"y")),
        ("sync_directory", lambda disk: disk.sync_directory("d")),
        ("lock", lambda disk: disk.lock("d/lock")),
        ("allocate", lambda disk: disk.allocate("d/room", 10)),
    ],
)
def test_any_operation_fails_on_demand_and_works_again_after_that(
    drive: Drive, disk: Disk, operation: str, use: Callable[[Disk], object]
) -> None:
    create(disk, "d/x", b"x")
    drive.error_rates[operation] = 1.0
    with pytest.raises(OSError, match="Input/output error") as failed:
        use(disk)
    assert failed.value.errno == errno.EIO
    assert disk_names(drive) <= {"d", "d/x", "d/lock"} | ({"d/room"} if operation == "allocate" else set())
    drive.heal()
    use(disk)


def disk_names(drive: Drive) -> set[str]:
    return set(drive.names.entries)


def test_a_failed_append_leaves_a_beginning_and_says_how_much(drive: Drive, disk: Disk) -> None:
    file = disk.open("d/x", create=True)
    drive.error_rates["write"] = 1.0
    sizes, kept = set(), b""
    for _ in range(50):
        with pytest.raises(OSError, match="Input/output error"):
            file.append([b"0123456789"])
        kept += b"0123456789"[: file.size() - len(kept)]
        assert drive.content("d/x") == kept
        sizes.add(len(kept) % 10)
    assert len(sizes) > 3


def test_a_full_disk_takes_what_it_can_until_there_is_room_again(drive: Drive, disk: Disk) -> None:
    file = disk.open("d/x", create=True)
    drive.capacity = 8
    with pytest.raises(OSError, match="No space left"):
        file.append([b"0123456789"])
    assert (file.size(), drive.content("d/x"), disk.free_bytes(), disk.total_bytes()) == (
        8,
        b"01234567",
        0,
        8,
    )
    file.write(0, b"in place")
    with pytest.raises(OSError, match="No space left"):
        disk.allocate("d/room", 100)
    assert disk.list("d") == ["x"]
    drive.capacity = 5
    assert disk.free_bytes() == 0
    drive.capacity = 200
    file.append([b"89"])
    disk.allocate("d/room", 100)
    assert (drive.content("d/x"), disk.free_bytes()) == (b"in place89", 90)


def test_a_kill_in_the_midst_of_a_write_may_leave_its_first_part(
    world: World, drive: Drive, disk: Disk
) -> None:
    file = disk.open("d/x", create=True)
    drive.short_write_rate = 1.0
    file.append([b"0123456789"])
    assert (drive.content("d/x"), file.size()) == (b"0123456789", 10)
    drive.crash_after(1, world.processes[0].end)
    with pytest.raises(SystemExit):
        file.append([b"0123456789"])
    assert 10 <= len(drive.content("d/x")) < 20


def test_a_crash_comes_after_so_many_changes_and_before_the_next(
    world: World, drive: Drive, disk: Disk
) -> None:
    file = disk.open("d/x", create=True)
    drive.crash_after(2, world.processes[0].end)
    for number in range(2):
        file.append([b"%d" % number])
        file.read(0, 1)
    with pytest.raises(SystemExit):
        file.append([b"2"])
    assert drive.content("d/x") == b"01"


def test_a_bit_flips_only_where_data_was_synced(drive: Drive, disk: Disk) -> None:
    create(disk, "d/grown", bytes(PAGE_BYTES))
    disk.open("d/grown").append([bytes(9 * PAGE_BYTES)])
    assert max(flipped(drive)) < PAGE_BYTES, "the file is longer in the cache alone"


def test_no_bit_flips_in_a_page_that_was_changed_since_it_was_synced(drive: Drive, disk: Disk) -> None:
    create(disk, "d/changed", bytes(10 * PAGE_BYTES))
    assert max(flipped(drive)) >= PAGE_BYTES
    disk.open("d/changed").write(PAGE_BYTES, bytes(9 * PAGE_BYTES))
    assert max(flipped(drive)) < PAGE_BYTES, "the other pages are still to be written"
    drive.error_rates = {"sync": 1.0}
    with pytest.raises(OSError, match="error"):
        disk.open("d/changed").sync()
    drive.heal()
    assert max(flipped(drive)) < PAGE_BYTES, "a sync that failed may have written nothing"


def flipped(drive: Drive) -> list[int]:
    """The positions of many bits that were flipped."""
    found = [drive.flip_bit() for _ in range(20)]
    return [each[1] for each in found if each is not None]


def test_a_flipped_bit_is_read_and_survives_a_power_cut(drive: Drive, disk: Disk) -> None:
    assert drive.flip_bit() is None
    create(disk, "d/cold", bytes(PAGE_BYTES))
    create(disk, "d/other", bytes(PAGE_BYTES))
    disk.open("d/warm", create=True).append([bytes(100 * PAGE_BYTES)])
    found = drive.flip_bit(lambda path: path.endswith("cold"))
    assert found is not None
    path, position = found
    assert path == "d/cold"
    read = disk.open(path).read(position, 1)[0]
    assert read.bit_count() == 1
    assert sum(drive.content("d/cold")) == read
    assert not any(drive.content("d/other"))
    assert drive.flip_bit(lambda path: path.endswith("warm")) is None, "its name was not synced"
    cut_power(drive)
    assert drive.content("d/cold")[position] == read
