"""The data directory: one process at a time, no links, one clean start, and never another's logs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from postroad.broker.data_directory import DataDirectory
from postroad.broker.reserve import RESERVE_BYTES
from postroad.cluster.ids import id_text, make_id
from postroad.errors import ConfigurationError
from postroad.log.disk import Disk, OsDisk
from postroad.log.memory_disk import MemoryDisk
from tests.broker.harness import Running
from tests.log.logs import all_lost

TOPIC_ID = make_id(bytes(range(16)))


def opened(path: Path, disk: Disk | None = None) -> DataDirectory:
    directory = DataDirectory(path, disk or OsDisk())
    directory.open()
    return directory


@pytest.fixture(params=["memory", "os"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return MemoryDisk() if request.param == "memory" else OsDisk()


# --- who may use it


def test_it_is_made_for_its_owner_only(tmp_path: Path) -> None:
    directory = opened(tmp_path / "deep" / "data")
    for made in (directory.path, directory.logs):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    directory.close(clean=False)


def test_another_process_is_kept_out_with_a_clear_message(tmp_path: Path) -> None:
    hold = (
        "import sys; from pathlib import Path; from postroad.broker.data_directory import DataDirectory;"
        "from postroad.log.disk import OsDisk;"
        "DataDirectory(Path(sys.argv[1]), OsDisk()).open(); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        for _ in range(3):
            with pytest.raises(ConfigurationError, match=f"in use by another.*pid {holder.pid}.*--data"):
                opened(tmp_path)
        holder.kill()
    opened(tmp_path).close(clean=False)  # a kill frees it


def test_two_nodes_in_one_process_are_kept_apart_too(tmp_path: Path, disk: Disk) -> None:
    first = opened(tmp_path, disk)
    with pytest.raises(ConfigurationError, match=f"in use.*pid {os.getpid()}"):
        opened(tmp_path, disk)
    first.close(clean=False)
    opened(tmp_path, disk).close(clean=False)


def test_a_path_that_is_no_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"can't be used.*--data"):
        opened(tmp_path / "file")


# --- links


def test_the_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "elsewhere")
    opened(tmp_path / "data").close(clean=True)
    assert (tmp_path / "elsewhere" / "clean-shutdown").exists()


def test_the_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "node.json").symlink_to("/etc/hostname")
    with pytest.raises(ConfigurationError, match=f"^{tmp_path}/node.json is a symbolic link"):
        opened(tmp_path)


@pytest.mark.parametrize("place", ["logs", "node.json", "logs/x", "coordination.sqlite", "clean-shutdown"])
def test_a_symbolic_link_inside_is_refused(tmp_path: Path, place: str) -> None:
    data = tmp_path / "data"
    (data / "logs").mkdir(parents=True) if place.startswith("logs/") else data.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (data / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="symbolic link"):
        opened(data)


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").symlink_to(tmp_path / "made-through-the-link")
    with pytest.raises(ConfigurationError):
        opened(tmp_path / "data")
    assert not (tmp_path / "made-through-the-link").exists()


# --- how it was left


def test_the_marker_of_a_clean_stop_counts_once(tmp_path: Path, disk: Disk) -> None:
    directory = opened(tmp_path, disk)
    assert directory.take_marker() is False
    directory.close(clean=True)
    directory.open()
    assert [directory.take_marker(), directory.take_marker()] == [True, False]
    directory.close(clean=False)
    directory.open()
    assert directory.take_marker() is False
    directory.close(clean=False)


def test_a_kill_leaves_the_boot_and_a_power_cut_does_not() -> None:
    disk = MemoryDisk()
    directory = opened(Path("/data"), disk)
    assert not directory.same_boot(), "nothing is known of a new directory"
    directory.record_boot()
    assert directory.same_boot()
    assert opened(Path("/data"), disk.copy()).same_boot()
    cut = disk.crash(all_lost)
    after = opened(Path("/data"), cut)
    assert not after.same_boot()
    assert not after.same_boot(), "as long as nobody has recorded it"
    after.record_boot()
    assert opened(Path("/data"), cut.copy()).same_boot()


def test_a_boot_that_is_not_known_is_another_one() -> None:
    class Nameless(MemoryDisk):
        def boot_id(self) -> str:
            return ""

    directory = opened(Path("/data"), Nameless())
    directory.record_boot()
    assert not directory.same_boot()


def test_a_boot_that_can_not_be_recorded_stops_nothing() -> None:
    disk = MemoryDisk()
    directory = opened(Path("/data"), disk)
    disk.capacity = 0
    directory.record_boot()
    assert not directory.same_boot()


def test_the_operating_system_names_its_boot(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "a", OsDisk()), OsDisk()
    assert second.boot_id() == OsDisk().boot_id()
    first.record_boot()
    assert first.same_boot() == bool(second.boot_id())


def test_a_marker_that_can_not_be_left_stops_nothing(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    os.mkdir(tmp_path / "clean-shutdown")
    directory.close(clean=True)
    os.rmdir(tmp_path / "clean-shutdown")
    opened(tmp_path).close(clean=False)


def test_the_marker_and_its_end_outlast_a_power_cut() -> None:
    disk = MemoryDisk()
    opened(Path("/data"), disk).close(clean=True)
    disk = disk.crash(all_lost)
    assert opened(Path("/data"), disk).take_marker()
    assert not opened(Path("/data"), disk.crash(all_lost)).take_marker()


def test_a_directory_is_not_taken_for_the_marker(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    (tmp_path / "clean-shutdown").mkdir()
    with pytest.raises(IsADirectoryError):
        directory.take_marker()
    assert (tmp_path / "clean-shutdown").is_dir()
    directory.close(clean=False)


# --- the reserve


def test_the_reserve_is_laid_aside_once_and_spent_once(tmp_path: Path, disk: Disk) -> None:
    directory = opened(tmp_path, disk)
    for _ in range(2):
        directory.reserve.lay_aside()
        assert disk.open(str(tmp_path / "reserve")).size() == RESERVE_BYTES
    assert [directory.reserve.spend(), directory.reserve.spend()] == [True, False]
    directory.close(clean=False)


def test_a_disk_without_room_for_the_reserve_is_left_as_it_is(tmp_path: Path) -> None:
    disk = MemoryDisk(RESERVE_BYTES // 2)
    directory = opened(tmp_path, disk)
    free = disk.free_bytes()
    directory.reserve.lay_aside()
    assert disk.free_bytes() == free
    assert not directory.reserve.spend()


# --- whose logs they are


def test_the_identity_is_for_its_owner_only_and_outlasts_a_power_cut(tmp_path: Path) -> None:
    directory, memory = opened(tmp_path), MemoryDisk()
    directory.note("ours", 1, "here")
    assert stat.S_IMODE((tmp_path / "node.json").stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "logs", "node.json"]
    opened(tmp_path, memory).note("ours", 1, "here")
    with pytest.raises(ConfigurationError, match="belongs to node 1"):
        opened(tmp_path, memory.crash(all_lost)).belong_to("ours", 2, 1)
    directory.close(clean=False)


def test_a_directory_keeps_its_own_id_and_older_ones_get_one(tmp_path: Path, disk: Disk) -> None:
    directory = opened(tmp_path, disk)
    disk.replace(str(tmp_path / "node.json"), b'{"version":1,"cluster_id":"ours","node_id":1}')
    directory.belong_to("ours", 1, 1)
    assert directory.known_id("fresh") == "fresh"
    directory.note("ours", 1, "fresh")
    assert directory.known_id("another") == "fresh"
    directory.belong_to("ours", 1, 1)
    directory.close(clean=False)


def test_a_look_at_the_marker_leaves_it(tmp_path: Path, disk: Disk) -> None:
    directory = opened(tmp_path, disk)
    assert not directory.is_clean()
    directory.close(clean=True)
    directory.open()
    assert directory.is_clean()
    assert directory.take_marker()
    assert not directory.is_clean()
    directory.close(clean=False)


def test_an_identity_that_is_broken_or_became_a_link_is_refused_and_kept(tmp_path: Path) -> None:
    directory, identity = opened(tmp_path), tmp_path / "node.json"
    identity.write_bytes(b"\xff" * 10_000)
    with pytest.raises(ConfigurationError, match="Restore it from a backup"):
        directory.belong_to("ours", 1, 1)
    assert identity.read_bytes() == b"\xff" * 10_000
    identity.unlink()
    identity.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="can't be read"):
        directory.belong_to("ours", 1, 1)
    directory.close(clean=False)


def test_partitions_are_found_by_their_topics_ids_and_nothing_else_is(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for index in (11, 2):
        os.mkdir(directory.partition_directory(TOPIC_ID, index))
    for other in ("notes.txt", "short-1", f"{id_text(TOPIC_ID)}-x"):
        (directory.logs / other).mkdir()
    assert sorted(directory.partitions()) == [(id_text(TOPIC_ID), 2), (id_text(TOPIC_ID), 11)]
    directory.close(clean=False)


def test_strays_are_kept_and_told(start: Callable[..., Running], caplog: pytest.LogCaptureFixture) -> None:
    running = start()
    running.stop()
    stray = Path(running.node.directory.partition_directory(TOPIC_ID, 0))
    stray.mkdir()
    (stray / "file").write_text("somebody's")
    running.start()
    assert (stray / "file").read_text() == "somebody's"
    assert "belongs to no topic" in caplog.text


def test_a_store_that_is_older_than_what_was_deleted_is_refused(tmp_path: Path, disk: Disk) -> None:
    directory = opened(tmp_path, disk)
    directory.note("ours", 1, "here")
    directory.note_revision(40)
    directory.note_revision(30)
    directory.note("ours", 1, "here")
    directory.belong_to("ours", 1, 40)
    with pytest.raises(ConfigurationError, match="an older one"):
        directory.belong_to("ours", 1, 39)
    directory.close(clean=False)


def test_a_partition_that_is_half_deleted_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    disk = MemoryDisk()
    directory = opened(tmp_path, disk)
    for index in range(2):
        path = directory.partition_directory(b"t" * 16, index)
        disk.make_directory(f"{path}/ledger")
        disk.open(f"{path}/00.log", create=True).close()
        disk.sync_directory(path)
    disk.sync_directory(str(directory.logs))
    directory.remove_partition(b"t" * 16, 0)
    gone = directory.partition_directory(b"t" * 16, 0)
    assert disk.crash(all_lost).list(gone) == [], "no file comes back after a power cut"
    assert [index for _, index in directory.partitions()] == [1]
    mark = disk.open(directory.partition_directory(b"t" * 16, 1) + ".removed", create=True)
    mark.sync()
    mark.close()
    directory.finish_removals()
    assert disk.list(str(directory.logs)) == []
