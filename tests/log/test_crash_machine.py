"""Any history of appends, writes, syncs, kills and power cuts, also during recovery (L1, L2, P1).

A sync may fail: what it left is durable when the log has been opened again.
"""

from __future__ import annotations

import contextlib
import errno
import random
from dataclasses import replace

from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import SyncJob

from .logs import (
    SMALL,
    Crash,
    Stored,
    all_kept,
    all_lost,
    append,
    batch,
    check_survivors,
    crashed,
    open_log,
    stop_at,
    stored,
)

SETTINGS = replace(SMALL, segment_bytes=600)


def fates(seed: int) -> Pick:
    """Two extremes, and random fates of everything that was not synced."""
    if seed < 2:
        return (all_lost, all_kept)[seed]
    return random.Random(seed).randrange


SEEDS = st.integers(0, 1 << 16)


class CrashMachine(RuleBasedStateMachine):
    """The model is the list of batches as they were written; the log must hold a beginning of it."""

    @initialize()
    def begin(self) -> None:
        self.disk = MemoryDisk()
        self.log = open_log(self.disk, SETTINGS)
        self.job: SyncJob | None = None
        self.staged: list[memoryview] = []
        self.written: list[Stored] = []

    @rule(count=st.integers(1, 3), size=st.integers(0, 120))
    def append(self, count: int, size: int) -> None:
        content = batch(count, size=size)
        append(self.log, content)
        self.staged.append(content)

    @rule()
    def write(self) -> None:
        self.log.write()
        for content in self.staged:
            offset = int.from_bytes(content[:8], "big")
            self.written.append(Stored(offset, bytes(content)))
        self.staged = []

    @precondition(lambda self: self.job is None)
    @rule()
    def begin_sync(self) -> None:
        self.job = self.log.begin_sync()

    @precondition(lambda self: self.job is not None)
    @rule()
    def finish_sync(self) -> None:
        assert self.job is not None
        self.job.run()
        self.log.finish_sync(self.job, None)
        self.job = None

    @precondition(lambda self: self.job is not None)
    @rule(operation=st.integers(0, 8), seed=SEEDS)
    def crash_while_syncing(self, operation: int, seed: int) -> None:
        assert self.job is not None
        stop_at(self.disk, operation, Crash())
        try:
            self.job.run()
        except Crash:
            self.reopen(crashed(self.disk, fates(seed)))
        else:
            self.disk.on_operation = None
            self.log.finish_sync(self.job, None)
            self.job = None

    @precondition(lambda self: self.job is not None)
    @rule(operation=st.integers(0, 8), kills=st.integers(1, 2))
    def fail_to_sync(self, operation: int, kills: int) -> None:
        """The disk refuses from some operation on; the process ends, perhaps once more while it starts."""
        assert self.job is not None
        stop_at(self.disk, operation, OSError(errno.EIO, "injected"))
        with contextlib.suppress(OSError):
            self.job.run()
        disk = self.disk.copy()
        if kills > 1:
            stop_at(disk, operation, OSError(errno.EIO, "injected"))
            with contextlib.suppress(OSError):
                open_log(disk, SETTINGS)
            disk = disk.copy()
        self.reopen(disk)

    @rule(seed=SEEDS)
    def crash(self, seed: int) -> None:
        self.reopen(self.disk.crash(fates(seed)))

    @rule()
    def kill(self) -> None:
        self.reopen(self.disk.copy())

    @rule(seed=SEEDS, operation=st.integers(0, 25), second=SEEDS)
    def crash_twice(self, seed: int, operation: int, second: int) -> None:
        """Power goes, and again while the log recovers."""
        disk = self.disk.crash(fates(seed))
        stop_at(disk, operation, Crash())
        try:
            open_log(disk, SETTINGS)
        except Crash:
            disk = crashed(disk, fates(second))
        disk.on_operation = None
        self.reopen(disk)

    @precondition(lambda self: self.job is None)
    @rule()
    def stop_in_order(self) -> None:
        self.write()
        self.log.close()
        acknowledged = self.log.written_offset
        check_survivors(open_log(self.disk.crash(all_lost), SETTINGS), self.written, acknowledged)
        self.log = open_log(self.disk, SETTINGS, clean=True)
        assert self.log.recovery.scanned_bytes == 0
        check_survivors(self.log, self.written, acknowledged)

    def reopen(self, disk: MemoryDisk) -> None:
        acknowledged = self.log.synced_offset
        again = open_log(disk.copy(), SETTINGS)
        self.disk, self.job, self.staged = disk, None, []
        self.log = open_log(disk, SETTINGS)
        check_survivors(self.log, self.written, acknowledged)
        assert stored(again) == stored(self.log), "recovery is the same each time"
        third = open_log(disk.crash(all_lost), SETTINGS)
        assert stored(third) == stored(self.log), "what was recovered is durable"
        assert third.recovery.cut_bytes == 0
        self.written = stored(self.log)

    @invariant()
    def offsets_are_in_order(self) -> None:
        log = self.log
        assert log.start_offset <= log.synced_offset <= log.written_offset <= log.end_offset

    @invariant()
    def what_was_written_can_be_read(self) -> None:
        assert stored(self.log, max_bytes=250) == self.written


TestCrashMachine = CrashMachine.TestCase
TestCrashMachine.settings = examples(max_examples=200, stateful_step_count=40)
