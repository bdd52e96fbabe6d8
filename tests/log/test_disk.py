from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import pytest

from postroad.log.disk import IOV_MAX, Disk, LockHeld, OsDisk
from postroad.log.memory_disk import MemoryDisk

from .logs import DIRECTORY, SMALL, all_kept, all_lost, batch, filled, open_log, send, stored, sync


@pytest.fixture(params=["memory", "os"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else OsDisk(str(tmp_path))


def open_below(directory: Path) -> list[str]:
    """The files there that this process has open. Others may be closed whenever garbage is collected."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(path for path in found if path.startswith(f"{directory}/"))


def test_both_disks_keep_the_same_promises(disk: Disk) -> None:
    disk.make_directory("a/b")
    disk.make_directory("a/b")
    assert disk.list("a") == ["b"]
    assert disk.list("none") == []
    with pytest.raises(FileNotFoundError):
        disk.open("a/b/x")
    file = disk.open("a/b/x", create=True)
    file.append([b"one", memoryview(b"two"), bytearray(b"three")])
    file.write(1, b"NN")
    assert file.read(0, 100) == b"oNNtwothree"
    assert file.read(3, 3) == b"two"
    assert file.read(11, 5) == b""
    file.truncate(6)
    file.sync()
    assert (file.size(), disk.open("a/b/x").size()) == (6, 6)
    disk.rename("a/b/x", "a/b/y")
    disk.replace("a/b/z", b"new")
    disk.replace("a/b/z", b"newer")
    disk.sync_directory("a/b")
    assert disk.list("a/b") == ["y", "z"]
    assert disk.open("a/b/z").read(0, 9) == b"newer"
    disk.remove("a/b/y")
    disk.remove("a/b/y")
    disk.remove("a/b")
    assert disk.list("a") == []
    assert 0 < disk.free_bytes() <= disk.total_bytes()
    file.close()


def test_only_files_are_unlinked(disk: Disk) -> None:
    disk.make_directory("a/b")
    disk.open("a/x", create=True)
    assert [disk.unlink("a/x"), disk.unlink("a/x")] == [True, False]
    with pytest.raises(IsADirectoryError):
        disk.unlink("a/b")
    assert disk.list("a") == ["b"]


def test_a_lock_has_one_holder_until_it_is_closed(disk: Disk) -> None:
    first = disk.lock("lock")
    with pytest.raises(LockHeld) as refused:
        disk.lock("lock")
    assert refused.value.holder == str(os.getpid())
    for _ in range(2):
        first.close()
    disk.lock("lock").close()


def test_room_is_taken_and_given_back(disk: Disk) -> None:
    disk.allocate("room", 5000)
    disk.allocate("room", 5000)
    assert disk.open("room").size() == 5000
    assert disk.unlink("room")


def test_where_there_is_too_little_room_none_is_taken() -> None:
    disk = MemoryDisk(4096)
    with pytest.raises(OSError, match="No space"):
        disk.allocate("room", 5000)
    assert (disk.list("."), disk.free_bytes()) == ([], 4096)


def test_room_that_the_system_refuses_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space"):
        OsDisk(str(tmp_path)).allocate("room", 5000)
    assert list(tmp_path.iterdir()) == []


def test_what_leads_to_a_directory_is_made_as_the_user_likes(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        OsDisk(str(tmp_path)).make_directory("a/b")
    finally:
        os.umask(mask)
    assert [(tmp_path / path).stat().st_mode & 0o777 for path in ("a", "a/b")] == [0o750, 0o700]


def test_more_buffers_than_the_kernel_takes_at_once_are_written(disk: Disk) -> None:
    disk.make_directory("a")
    file = disk.open("a/x", create=True)
    buffers = [bytes([i % 251]) * (i % 3) for i in range(2 * IOV_MAX + 5)]
    file.append(buffers)
    assert file.read(0, file.size() + 1) == b"".join(buffers)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwritev, pwrite = os.pwritev, os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: pwritev(fd, [b"".join(buffers)[:3]], at))
    monkeypatch.setattr(os, "pwrite", lambda fd, content, at: pwrite(fd, content[:2], at))
    file = OsDisk(str(tmp_path)).open("x", create=True)
    file.append([b"hello", b" ", b"world"])
    assert file.read(0, 100) == b"hello world"


def test_a_write_that_fails_half_way_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwritev = os.pwritev

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: pwritev(fd, [b"".join(buffers)[:3]], at))
    monkeypatch.setattr(os, "pwrite", full)
    file = OsDisk(str(tmp_path)).open("x", create=True)
    with pytest.raises(OSError, match="full"):
        file.append([b"hello"])
    assert file.size() == 3


def test_a_descriptor_lives_as_long_as_somebody_holds_the_file(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    file = disk.open("x", create=True)
    os.fstat(file.fileno())
    assert open_below(tmp_path) == [str(tmp_path / "x")]
    del file
    assert open_below(tmp_path) == []


def test_symbolic_links_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    data = tmp_path / "data"
    data.mkdir()
    disk = OsDisk(str(data))
    (data / "link").symlink_to(outside / "secret")
    (data / "directory").symlink_to(outside)
    with pytest.raises(OSError, match=r"symbolic|Too many"):
        disk.open("link")
    with pytest.raises(OSError, match=r"symbolic|Too many|Not a directory"):
        disk.list("directory")
    with pytest.raises(OSError, match="symbolic"):
        disk.list(".")
    disk.remove("directory")
    assert (outside / "secret").exists()


def test_a_log_with_a_symbolic_link_in_its_directory_does_not_open(tmp_path: Path) -> None:
    (tmp_path / DIRECTORY).mkdir(parents=True)
    (tmp_path / DIRECTORY / "00000000000000000000.log").symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic"):
        open_log(OsDisk(str(tmp_path)))


def test_files_and_directories_are_for_their_owner_only(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    disk.make_directory("a/b")
    disk.open("a/x", create=True)
    disk.replace("a/y", b"")
    assert [(tmp_path / "a" / name).stat().st_mode & 0o777 for name in ("b", "x", "y")] == [
        0o700,
        0o600,
        0o600,
    ]


def test_a_log_on_the_real_disk_is_what_it_is_in_memory(tmp_path: Path) -> None:
    memory, disk = filled(MemoryDisk()), OsDisk(str(tmp_path))
    log = open_log(disk)
    for number in range(30):
        send(log, batch(1 + number % 3, time=memory.max_timestamp().timestamp - 29 + number))  # type: ignore[union-attr]
    sync(log)
    assert [offset for offset, _ in stored(log)] == [offset for offset, _ in stored(memory)]
    log.close()
    again = open_log(disk, clean=True)
    assert stored(again) == stored(log)
    assert again.recovery.scanned_bytes == 0


def test_idle_logs_hold_no_descriptors(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    log = open_log(disk)
    send(log, batch())
    log.close()
    before = open_below(tmp_path)
    logs = [open_log(disk, SMALL, clean=clean) for clean in (True, False)]
    assert open_below(tmp_path) == before
    assert all(log.end_offset == 1 for log in logs)


def test_unsynced_bytes_and_names_are_lost_and_kept_as_picked() -> None:
    disk = MemoryDisk()
    disk.open("d/a", create=True).append([b"synced"])
    disk.open("d/a").sync()
    disk.sync_directory("d")
    disk.open("d/a").append([b" not"])
    disk.open("d/b", create=True)
    disk.rename("d/a", "d/c")
    lost, kept = disk.crash(all_lost), disk.crash(all_kept)
    assert (lost.list("d"), lost.content("d/a")) == (["a"], b"synced")
    assert (kept.list("d"), kept.content("d/c")) == (["b", "c"], b"synced not")


def test_after_a_failed_sync_only_what_is_written_again_is_synced() -> None:
    disk = MemoryDisk()
    file = disk.open("file", create=True)
    disk.sync_directory("")
    file.append([b"a" * 600])
    file.sync()
    file.append([b"b" * 1200])

    def fail(operation: str, _: str) -> None:
        raise OSError(errno.EIO, operation)

    disk.on_operation = fail
    with pytest.raises(OSError, match="sync"):
        file.sync()
    disk.on_operation = None
    again = disk.copy()
    again.open("file").sync()
    assert again.content("file") == b"a" * 600 + b"b" * 1200, "it can still be read"
    assert again.crash(all_lost).content("file") == b"a" * 600
    assert again.crash(all_kept).content("file") == b"a" * 600 + b"b" * 1200
    again.open("file").write(1600, b"b" * 200)
    again.open("file").sync()
    assert again.crash(all_lost).content("file") == b"a" * 600 + bytes(936) + b"b" * 264, "from its sector on"
    again.open("file").write(600, b"b" * 1000)
    again.open("file").sync()
    assert again.crash(all_lost).content("file") == again.content("file")


def test_what_a_killed_process_left_unsynced_is_still_unsynced() -> None:
    disk = MemoryDisk()
    disk.open("file", create=True).append([b"bytes"])
    found = disk.copy()
    assert found.content("file") == b"bytes"
    assert found.crash(all_lost).list("") == []
    found.sync_directory("")
    assert found.crash(all_lost).content("file") == b""
    found.open("file").sync()
    assert found.crash(all_lost).content("file") == b"bytes"
    assert disk.crash(all_lost).list("") == [], "each for itself"


def test_directory_whose_name_could_not_be_synced_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "refused")

    disk = OsDisk(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="refused"):
            disk.make_directory("made")
    assert not (tmp_path / "made").exists()
    disk.make_directory("made")
    assert (tmp_path / "made").is_dir()
