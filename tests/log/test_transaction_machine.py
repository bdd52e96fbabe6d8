"""Any history of transactions, plain batches, failed writes, kills, power cuts, truncations and copies.

The model has no state of its own: it reads the whole log from its start. Whatever the log has kept in memory,
in snapshots and in lists of aborted transactions must say the same.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from postroad.errors import StorageFailed
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog, SyncJob

from .logs import NOW, SMALL, Crash, append, batch, crashed, open_log, read_all, stop_at
from .test_crash_machine import SEEDS, fates
from .transactions import Writer, find

SETTINGS = replace(SMALL, segment_bytes=700)
PRODUCERS = st.integers(0, 3)


class TransactionMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.disk = MemoryDisk()
        self.log = open_log(self.disk, SETTINGS)
        self.job: SyncJob | None = None
        self.watermark = 0  # what was synced once was committed

    def writer(self, number: int) -> Writer:
        """A producer that goes on where the log says that it is."""
        known = {producer.producer_id: producer for producer in self.log.producers()}
        found = known.get(number)
        writer = Writer(number, found.epoch if found else 0)
        writer.sequence = found.last_sequence + 1 if found else 0
        return writer

    @rule(number=PRODUCERS, count=st.integers(1, 3), size=st.integers(0, 150))
    def write_in_transaction(self, number: int, count: int, size: int) -> None:
        self.writer(number).write(self.log, count, size=size)

    @rule(number=PRODUCERS, commit=st.booleans(), raise_epoch=st.booleans())
    def end(self, number: int, commit: bool, raise_epoch: bool) -> None:
        self.writer(number).end(self.log, commit, raise_epoch=raise_epoch)

    @rule(size=st.integers(0, 120))
    def append_plain(self, size: int) -> None:
        append(self.log, batch(size=size))

    @rule()
    def write(self) -> None:
        self.log.write()

    @rule()
    def fail_to_write(self) -> None:
        self.disk.capacity = 0
        try:
            self.log.write()
        except StorageFailed:
            pass
        finally:
            self.disk.capacity = None

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

    @rule(seed=SEEDS)
    def crash(self, seed: int) -> None:
        self.reopen(self.disk.crash(fates(seed)))

    @rule()
    def kill(self) -> None:
        self.reopen(self.disk.copy())

    @rule(seed=SEEDS, operation=st.integers(0, 25), second=SEEDS)
    def crash_twice(self, seed: int, operation: int, second: int) -> None:
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
        self.log.write()
        self.log.close()
        self.log = open_log(self.disk, SETTINGS, clean=True)

    @precondition(lambda self: self.job is None)
    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        """Never below the watermark: that is committed."""
        self.log.write()
        self.log.truncate_to(max(self.watermark, self.log.end_offset - back), NOW)

    @rule(part=st.integers(0, 100))
    def delete_records(self, part: int) -> None:
        start = self.log.start_offset
        self.log.delete_before(start + (self.watermark - start) * part // 100, self.watermark)
        for removed in self.log.expire(NOW, self.watermark):
            removed.run()

    @rule()
    def copy(self) -> None:
        """A new follower copies all, as from a leader."""
        follower, batches = open_log(MemoryDisk(), SETTINGS), list(read_all(self.log))
        if batches:
            follower.reset_to(batches[0][0].base_offset, NOW)
        for _, content in batches:
            follower.append_copy(memoryview(bytearray(content)), 10, NOW)
        follower.write()
        found = find(follower)
        end = follower.written_offset
        assert follower.stable_offset(end) == max(follower.start_offset, found.stable_offset(end))
        self.check_aborted(follower, follower.stable_offset(end))

    def reopen(self, disk: MemoryDisk) -> None:
        self.disk, self.job = disk, None
        self.log = open_log(disk, SETTINGS)
        self.check()

    @invariant()
    def is_as_the_batches_say(self) -> None:
        self.check()

    def check(self) -> None:
        log = self.log
        self.watermark = max(self.watermark, log.synced_offset)
        found = find(log)
        if log.end_offset == log.written_offset:
            assert log.producer_states.open == found.open or log.start_offset
        stable = log.stable_offset(self.watermark)
        expected = found.stable_offset(self.watermark)
        if not log.start_offset:
            assert stable == expected
        assert log.start_offset <= stable <= self.watermark
        self.check_aborted(log, stable)

    def check_aborted(self, log: PartitionLog, stable: int) -> None:
        found = find(log)
        start = log.start_offset
        middle = (start + stable) // 2
        for first, below in ((start, stable), (middle, stable), (start, middle)):
            said = [(entry.first, entry.producer_id, entry.marker) for entry in log.aborted(first, below)]
            assert said == sorted(said)
            wanted = found.aborted(first, below)
            assert set(wanted) <= set(said) or start, (wanted, said)
            assert [entry for entry in said if entry[0] >= start] == [e for e in wanted if e[0] >= start]


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = examples(max_examples=120, stateful_step_count=40)
