"""Any history of operations, kills and power cuts on a simulated drive keeps D1–D3 of `postroad.log.disk`."""

from __future__ import annotations

from random import Random

import pytest

from postroad.log.disk import Disk
from simulator.disk import Drive
from simulator.paged_file import PAGE_BYTES, SECTOR_BYTES
from simulator.process import Process
from simulator.world import World
from tests.simulator.drives import content, cut_power, kill


class Expected:
    """What a file may hold after a power cut: any mixture of what it was since its last sync."""

    def __init__(self) -> None:
        self.since_sync = [b""]

    def check(self, found: bytes) -> None:
        sizes = [len(whole) for whole in self.since_sync]
        assert min(sizes) <= len(found) <= max(sizes)
        allowed = [whole.ljust(len(found), b"\0") for whole in self.since_sync]
        for at in range(0, len(found), SECTOR_BYTES):
            end = min(at + SECTOR_BYTES, len(found))
            assert any(whole[at:end] == found[at:end] for whole in allowed), f"at {at}"


class History:
    """Random operations on one directory of a drive, and what may be left of them."""

    def __init__(self, world: World, random: Random) -> None:
        self.random = random
        self.drive = Drive(world, "one")
        self.drive.short_write_rate = self.drive.write_back_rate = 0.2
        self.disk: Disk = self.drive.mount(Process(world, "one"))
        self.disk.make_directory("d")
        self.files: dict[str, Expected] = {}
        self.entries: dict[str, list[Expected | None]] = {}  # what each name stood for since the last sync

    def step(self) -> None:
        names = sorted(self.files)
        steps = [self.create] if not names else [self.create, self.rename, self.remove, self.sync_names]
        if names:
            steps += [self.write, self.write, self.fail_to_append, self.truncate, self.sync, self.kill]
        self.random.choice(steps)(self.random.choice(names or [""]))

    def create(self, _: str) -> None:
        path = f"d/{self.random.randrange(5)}"
        self.disk.open(path, create=True)
        if path not in self.files:
            self._name(path, Expected())

    def rename(self, path: str) -> None:
        new = f"d/{self.random.randrange(5)}"
        if new != path:
            self.disk.rename(path, new)
            file = self.files[path]
            self._name(path, None)
            self._name(new, file)

    def remove(self, path: str) -> None:
        self.disk.unlink(path)
        self._name(path, None)

    def sync_names(self, _: str) -> None:
        self.disk.sync_directory("d")
        self.entries = {path: [file] for path, file in self.files.items()}

    def write(self, path: str) -> None:
        file = self.disk.open(path)
        data = self.random.randbytes(self.random.choice((1, 700, 3 * PAGE_BYTES)))
        file.write(self.random.randrange(file.size() + 1), data)
        self._changed(path)

    def fail_to_append(self, path: str) -> None:
        file, before = self.disk.open(path), self.drive.content(path)
        data = self.random.randbytes(3 * PAGE_BYTES)
        self.drive.error_rates["write"] = 1.0
        with pytest.raises(OSError, match="Input/output error"):
            file.append([data])
        self.drive.error_rates.clear()
        assert self.drive.content(path) == before + data[: file.size() - len(before)]
        self._changed(path)

    def truncate(self, path: str) -> None:
        file = self.disk.open(path)
        file.truncate(self.random.randrange(file.size() + 1))
        self._changed(path)

    def sync(self, path: str) -> None:
        self.disk.open(path).sync()
        self.files[path].since_sync = [self.drive.content(path)]

    def kill(self, _: str) -> None:
        before = [(path, bytes(file.content)) for path, file in self.drive.files()]
        self.disk = kill(self.drive)
        assert [(path, bytes(file.content)) for path, file in self.drive.files()] == before

    def cut_power(self) -> None:
        self.disk = cut_power(self.drive)
        for path, candidates in self.entries.items():
            assert self._may_be(content(self.drive, path), candidates), path
        assert set(self.disk.list("d")) <= {path.removeprefix("d/") for path in self.entries}
        self.files = {}
        for path, found in self.drive.files():
            self.files[path] = Expected()
            self.files[path].since_sync = [bytes(found.content)]
        self.sync_names("")

    def _may_be(self, found: bytes | None, candidates: list[Expected | None]) -> bool:
        if found is None:
            return None in candidates
        for candidate in candidates:
            try:
                if candidate is not None:
                    candidate.check(found)
                    return True
            except AssertionError:
                continue
        return False

    def _name(self, path: str, file: Expected | None) -> None:
        self.entries.setdefault(path, [None]).append(file)
        if file is None:
            del self.files[path]
        else:
            self.files[path] = file

    def _changed(self, path: str) -> None:
        self.files[path].since_sync.append(self.drive.content(path))


def run_history(seed: int) -> tuple[str, list[tuple[str, bytes]]]:
    with World(seed) as world:
        history = History(world, Random(seed))
        for _ in range(4):
            for _ in range(history.random.randrange(25)):
                history.step()
            history.cut_power()
        return world.trace.digest, [(path, bytes(file.content)) for path, file in history.drive.files()]


def test_the_same_seed_gives_the_same_disk_and_the_same_trace() -> None:
    assert run_history(7) == run_history(7)
    assert run_history(7) != run_history(8)


@pytest.mark.parametrize("seed", range(40))
def test_after_any_history_a_power_cut_leaves_what_the_port_promises(seed: int) -> None:
    run_history(seed)
