"""Drives for tests: files that are safe on them, kills, and many power cuts at once."""

from __future__ import annotations

from collections.abc import Callable

from postroad.log.disk import Disk
from simulator.disk import Drive
from simulator.process import Process
from simulator.world import World

CUTS = 60  # power cuts that are tried, each with a seed of its own


def kill(drive: Drive) -> Disk:
    """The next process's disk."""
    for process in list(drive.world.processes):
        process.end()
    return drive.mount(Process(drive.world, drive.host))


def cut_power(drive: Drive) -> Disk:
    for process in list(drive.world.processes):
        process.end(power=True)
    drive.cut_power()
    return drive.mount(Process(drive.world, drive.host))


def after_power_cuts(prepare: Callable[[Drive, Disk], object]) -> list[Drive]:
    """The drives that power cuts leave after this preparation."""
    found = []
    for seed in range(CUTS):
        with World(seed) as world:
            drive = Drive(world, "one")
            disk = drive.mount(Process(world, "one"))
            disk.make_directory("d")
            prepare(drive, disk)
            cut_power(drive)
            found.append(drive)
    return found


def create(disk: Disk, path: str, content: bytes) -> None:
    """A file that nothing can take away."""
    file = disk.open(path, create=True)
    file.append([content])
    file.sync()
    disk.sync_directory("d")


def content(drive: Drive, path: str) -> bytes | None:
    return drive.content(path) if drive.names.file(path) is not None else None
