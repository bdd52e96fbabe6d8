"""What a power cut leaves on a simulated drive (D1 and D2 of `postroad.log.disk`), and what syncs are for."""

from __future__ import annotations

import contextlib
from functools import partial
from random import Random

import pytest

from postroad.log.disk import Disk
from simulator.disk import Drive
from simulator.names import DIRECTORY, Names
from simulator.paged_file import PAGE_BYTES, SECTOR_BYTES, PagedFile
from tests.simulator.drives import CUTS, after_power_cuts, content, create, kill


def test_what_was_unsynced_before_a_kill_still_is_after_it() -> None:
    def write_and_die(drive: Drive, disk: Disk) -> None:
        create(disk, "d/x", b"")
        disk.open("d/x").append([b"unsynced"])
        kill(drive)

    found = {content(drive, "d/x") for drive in after_power_cuts(write_and_die)}
    assert {b"", b"unsynced", bytes(8)} <= found


def test_a_power_cut_takes_nothing_that_was_synced() -> None:
    whole = Random(1).randbytes(3 * PAGE_BYTES + 100)
    for drive in after_power_cuts(lambda _, disk: create(disk, "d/x", whole)):
        assert drive.content("d/x") == whole


def test_unsynced_pages_are_kept_lost_or_torn_each_by_itself() -> None:
    old, new = b"o" * 4 * PAGE_BYTES, b"n" * 4 * PAGE_BYTES

    def overwrite(_: Drive, disk: Disk) -> None:
        create(disk, "d/x", old)
        disk.open("d/x").write(0, new)

    found = [drive.content("d/x") for drive in after_power_cuts(overwrite)]
    pages = {page for whole in found for page in pages_of(whole)}
    assert {old, new} <= set(found)
    assert {old[:PAGE_BYTES], new[:PAGE_BYTES]} < pages
    assert len({tuple(pages_of(whole)) for whole in found}) > 10
    sectors = {page[at : at + SECTOR_BYTES] for page in pages for at in range(0, PAGE_BYTES, SECTOR_BYTES)}
    assert sectors == {b"o" * SECTOR_BYTES, b"n" * SECTOR_BYTES}, "a sector is never torn"


def pages_of(whole: bytes) -> list[bytes]:
    return [whole[at : at + PAGE_BYTES] for at in range(0, len(whole), PAGE_BYTES)]


def test_a_file_that_grew_may_have_any_size_and_read_as_zeros() -> None:
    def grow(_: Drive, disk: Disk) -> None:
        create(disk, "d/x", b"s" * 100)
        file = disk.open("d/x")
        for _n in range(3):
            file.append([b"g" * PAGE_BYTES])

    found = [drive.content("d/x") for drive in after_power_cuts(grow)]
    sizes = {len(whole) for whole in found}
    assert {100, 100 + 3 * PAGE_BYTES} < sizes
    assert all(whole[:100] == b"s" * 100 for whole in found)
    assert any(whole[PAGE_BYTES : 2 * PAGE_BYTES] == bytes(PAGE_BYTES) for whole in found)


def test_what_was_cut_off_comes_back_only_if_that_was_not_synced() -> None:
    def cut(sync: bool, _: Drive, disk: Disk) -> None:
        create(disk, "d/x", b"o" * 3 * PAGE_BYTES)
        file = disk.open("d/x")
        file.truncate(10)
        if sync:
            file.sync()
        file.append([b"n" * 2 * PAGE_BYTES])

    unsynced = [drive.content("d/x") for drive in after_power_cuts(partial(cut, False))]
    synced = [drive.content("d/x") for drive in after_power_cuts(partial(cut, True))]
    assert any(whole.count(b"o") == 3 * PAGE_BYTES for whole in unsynced)
    assert {whole.count(b"o") for whole in synced} == {10}
    assert any(b"\0" in whole for whole in synced)


def test_unsynced_names_are_kept_or_lost_and_a_rename_is_whole() -> None:
    def change(_: Drive, disk: Disk) -> None:
        create(disk, "d/a", b"a")
        create(disk, "d/gone", b"")
        disk.open("d/new", create=True)
        disk.rename("d/a", "d/b")
        disk.rename("d/b", "d/c")
        disk.unlink("d/gone")

    found = {tuple(drive.names.inside("d")) for drive in after_power_cuts(change)}
    assert {("a", "gone"), ("c", "new"), ("b", "gone", "new")} <= found
    assert all(len({"a", "b", "c"} & set(names)) == 1 for names in found), "it has one name, and has one"


def test_a_file_that_was_renamed_twice_has_one_name() -> None:
    names, file = Names({"d": DIRECTORY, "d/a": PagedFile()}), PagedFile()
    names.change({"d/a": file})
    names.finish_sync(names.begin_sync("d"))
    names.change({"d/a": None, "d/b": file})
    names.change({"d/b": None, "d/c": file})
    found = {tuple(names.after_power_cut(Random(seed)).inside("d")) for seed in range(4 * CUTS)}
    assert found == {("a",), ("b",), ("c",)}


def test_names_of_other_directories_and_those_of_later_are_not_synced() -> None:
    def sync_one(_: Drive, disk: Disk) -> None:
        disk.make_directory("e")
        disk.open("d/synced", create=True)
        disk.open("e/other", create=True)
        disk.sync_directory("d")
        disk.open("d/later", create=True)

    drives = after_power_cuts(sync_one)
    assert {tuple(drive.names.inside("d")) for drive in drives} == {("synced",), ("later", "synced")}
    assert {tuple(drive.names.inside("e")) for drive in drives} == {(), ("other",)}


def test_a_directory_that_was_removed_may_come_back_with_some_of_its_files() -> None:
    def remove(_: Drive, disk: Disk) -> None:
        create(disk, "d/x", b"x")
        create(disk, "d/y", b"y")
        disk.remove("d")

    found = {tuple(drive.names.inside("d")) for drive in after_power_cuts(remove)}
    assert found == {(), ("x",), ("y",), ("x", "y")}
    assert all(drive.names.is_directory("d") for drive in after_power_cuts(remove) if drive.files())


def test_replacing_a_file_leaves_the_old_or_the_new_one_whole() -> None:
    old, new = b"o" * 5000, b"n" * 9000
    found: dict[int, set[bytes | None]] = {}
    finished = set()

    def replace(operations: int, drive: Drive, disk: Disk) -> None:
        disk.replace("d/x", old)
        drive.crash_after(operations, drive.world.processes[0].end)
        with contextlib.suppress(SystemExit):
            disk.replace("d/x", new)
            finished.add(operations)

    for operations in range(8):
        found[operations] = {
            content(drive, "d/x") for drive in after_power_cuts(partial(replace, operations))
        }
    assert finished == {6, 7}
    assert found[0] == found[4] == {old}
    assert found[5] == {old, new}
    assert found[6] == found[7] == {new}


def test_pages_may_go_to_the_disk_before_anybody_syncs() -> None:
    def write_twice(drive: Drive, disk: Disk) -> None:
        create(disk, "d/x", b"o" * PAGE_BYTES)
        drive.write_back_rate = 1.0
        disk.open("d/x").write(0, b"1" * PAGE_BYTES)
        drive.write_back_rate = 0.0
        disk.open("d/x").write(0, b"2" * PAGE_BYTES)

    found = {drive.content("d/x")[:1] for drive in after_power_cuts(write_twice)}
    assert found == {b"o", b"1", b"2"}


def test_a_failed_sync_is_told_once_and_its_pages_are_not_written_by_the_next() -> None:
    def fail_and_go_on(drive: Drive, disk: Disk) -> None:
        create(disk, "d/x", b"o" * 2 * PAGE_BYTES)
        file = disk.open("d/x")
        file.write(0, b"n" * 2 * PAGE_BYTES)
        drive.error_rates["sync"] = 1.0
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        drive.heal()
        file.sync()
        file.write(PAGE_BYTES + 7, b"again")
        file.sync()
        assert drive.content("d/x") == b"n" * (PAGE_BYTES + 7) + b"again" + b"n" * (PAGE_BYTES - 12)

    found = {drive.content("d/x") for drive in after_power_cuts(fail_and_go_on)}
    rewritten = b"n" * 7 + b"again" + b"n" * (PAGE_BYTES - 12)
    assert found == {b"o" * PAGE_BYTES + rewritten, b"n" * PAGE_BYTES + rewritten}


def test_what_is_written_while_a_sync_runs_is_not_covered_by_it() -> None:
    file = PagedFile(b"old")
    file.write(3, b" first")
    flush = file.begin_sync()
    file.write(9, b" second")
    file.finish_sync(flush)
    found = {bytes(file.after_power_cut(Random(seed)).content) for seed in range(CUTS)}
    assert found == {b"old first", b"old first second", b"old first" + bytes(7)}


def test_a_sync_that_ends_late_takes_nothing_back() -> None:
    file = PagedFile()
    file.write(0, b"first")
    slow = file.begin_sync()
    file.write(0, b"other")
    file.finish_sync(file.begin_sync())
    file.finish_sync(slow)
    assert {bytes(file.after_power_cut(Random(seed)).content) for seed in range(CUTS)} == {b"other"}


def test_a_sync_writes_no_more_than_what_was_changed() -> None:
    file = PagedFile(bytes(1000 * PAGE_BYTES))
    file.write(5 * PAGE_BYTES - 1, b"xy")
    assert sorted(file.begin_sync().pages) == [4, 5]
