"""A partition's log on a simulated drive: what was acknowledged survives whatever happens to it (L1, L2)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from postroad.errors import StorageFailed
from postroad.log.disk import Disk
from postroad.log.partition_log import PartitionLog, SyncJob
from simulator.disk import Drive
from simulator.process import Process
from simulator.world import World
from tests.log.logs import SMALL, Stored, append, batch, check_survivors, open_log, stored
from tests.simulator.drives import CUTS, cut_power, kill

SETTINGS = replace(SMALL, segment_bytes=9000, index_interval_bytes=1000)  # a few pages
STEPS = 40


class LogHistory:
    """The model is the list of batches as they were written; the log must hold a beginning of it."""

    def __init__(self, world: World, random: Random) -> None:
        self.random = random
        self.world = world
        self.drive = Drive(world, "one")
        self.drive.write_back_rate = 0.2
        self.disk: Disk = self.drive.mount(Process(world, "one"))
        self.log = open_log(self.disk, SETTINGS)
        self.written: list[Stored] = []
        self.acknowledged = 0

    def step(self) -> None:
        steps = [
            self.write,
            self.write,
            self.write,
            self.sync,
            self.sync,
            self.crash,
            self.crash_in_the_midst,
        ]
        self.random.choice([*steps, self.fail_to_sync])()

    def write(self) -> None:
        content = batch(self.random.randrange(1, 4), size=self.random.choice((10, 500, 2000)))
        offset = append(self.log, content).base_offset
        self.written.append(
            Stored(offset, bytes(content))
        )  # before it is: a crash may come after the first byte
        self.log.write()

    def sync(self) -> None:
        job = self.log.begin_sync()
        if job is not None:
            if self.random.random() < 0.5:
                self.write()
            job.run()
            self._finish(job)

    def fail_to_sync(self) -> None:
        """The log takes nothing more, and the process starts anew; power may go before or after that."""
        job = self.log.begin_sync()
        if job is None:
            return
        self.drive.error_rates["sync"] = self.random.choice((0.3, 1.0))
        try:
            job.run()
        except OSError as error:
            self.log.finish_sync(job, error)
            self.drive.error_rates.clear()
            self.crash()
        else:
            self.drive.error_rates.clear()
            self._finish(job)

    def crash(self) -> None:
        if self.random.random() < 0.3:
            self.drive.drop_caches()
        self.disk = self.random.choice((kill, cut_power))(self.drive)
        self.reopen()

    def crash_in_the_midst(self) -> None:
        """While a sync runs, and again while the log recovers."""
        self._arm()
        try:
            self.write()
            self.sync()
        except SystemExit:
            self.world.sometimes("crash in a sync")
            self.crash()
        self.drive.disarm()

    def reopen(self) -> None:
        if self.random.random() < 0.5:
            self._arm()
        try:
            self.log = open_log(self.disk, SETTINGS)
        except SystemExit:
            self.world.sometimes("crash in a recovery")
            self.crash()
            return
        self.drive.disarm()
        check_survivors(self.log, self.written, self.acknowledged)
        self.written = stored(self.log)
        self.acknowledged = self.log.synced_offset

    def _arm(self) -> None:
        self.drive.crash_after(self.random.randrange(12), self.world.processes[0].end)

    def _finish(self, job: SyncJob) -> None:
        self.log.finish_sync(job, None)
        self.acknowledged = self.log.synced_offset


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_acknowledged_batches_survive_kills_power_cuts_and_failed_syncs(first: int) -> None:
    for seed in range(first, first + 10):
        with World(seed) as world:
            history = LogHistory(world, Random(seed))
            for _ in range(STEPS):
                history.step()
            history.crash()


@pytest.mark.parametrize("seed", range(CUTS))
def test_a_write_that_was_taken_back_costs_nothing_that_was_synced_after_it(seed: int) -> None:
    """What it left behind the first segment's end may be back after a power cut, until the size is synced."""
    with World(seed) as world:
        drive = Drive(world, "one")
        log = open_log(drive.mount(Process(world, "one")), SETTINGS)
        write_and_sync(log, 500)
        drive.capacity = sum(len(file.content) for _, file in drive.files()) + 1000
        append(log, batch(1, size=2000))
        with pytest.raises(StorageFailed):
            log.write()
        drive.capacity = None
        append(log, batch(1, size=8800))  # it does not fit into the first segment
        log.write()
        written = stored(log)
        log = open_log(kill(drive), SETTINGS)
        assert stored(log) == written
        log = open_log(cut_power(drive), SETTINGS)
        assert stored(log) == written


def write_and_sync(log: PartitionLog, size: int) -> None:
    append(log, batch(1, size=size))
    log.write()
    job = log.begin_sync()
    assert job is not None
    job.run()
    log.finish_sync(job, None)
