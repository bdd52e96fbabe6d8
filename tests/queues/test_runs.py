"""Runs: several messages of a lane in one answer, and the order that they keep."""

from __future__ import annotations

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from postroad.errors import InvalidRecordState
from postroad.queues.entry import QueueEntry
from postroad.queues.settings import Order
from tests.queues import test_share_partition_machine as machine
from tests.queues.model import Held, Outcome
from tests.queues.shell import ACCEPT, RELEASE, RETURN, Shell
from tests.queues.strategies import MEMBERS

pytestmark = pytest.mark.usefixtures("small_chunks")


class RunsMachine(machine.SharePartitionMachine):
    """Everything that the other machine does, with runs among it."""

    order = Order.KEY

    @rule(member=MEMBERS, count=st.integers(1, 9), run_max=st.integers(2, 5))
    def acquire_runs(self, member: str, count: int, run_max: int) -> None:
        """Several of a lane at once: they ascend from its head on, and whoever is left stays behind them."""
        self._scan(self.model.log_end)
        model, now = self.model, self.now
        room, could = model.room(member, count), model.available(now, None)
        fit = [offset for offset in could if not model.unfit(offset, now)]
        runs = {head: [head, *model.run_behind(head, now, None)][:run_max] for head in fit}
        got = self.partition.acquire(member, count, now, run_max=run_max)
        offsets = [offset for each in got for offset in range(each.first, each.last + 1)]
        assert offsets == sorted(offsets)
        assert len(offsets) == max(0, min(room, sum(map(len, runs.values())))), (offsets, runs, room)
        for run in runs.values():
            out = [offset for offset in run if offset in offsets]
            assert out == run[: len(out)], "a run has a hole"
        assert set(offsets) <= {offset for run in runs.values() for offset in run}
        doomed = {o for first, last, _ in self.partition.backlog.doomed for o in range(first, last + 1)}
        for each in got:
            for offset in range(each.first, each.last + 1):
                model.held[offset] = Held(member, now.ms + model.settings.lock_ms, each.deliveries)
                if offset not in runs:
                    model.send_along(offset)
        model.doomed |= doomed
        if model.settings.at_most_once and offsets:
            self._decided(self.partition.finish([(o, o) for o in offsets]), Outcome(done=set(offsets)))
        self._archived(self.partition.take_expired(now), doomed)


RunsMachine.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=60, deadline=None)

TestRuns = RunsMachine.TestCase


def message(offset: int, key: bytes = b"a", deliver_at_ms: int = 0, expires_at_ms: int = 0) -> QueueEntry:
    return QueueEntry(offset, offset, key, None, deliver_at_ms, expires_at_ms)


@pytest.fixture
def shell() -> Shell:
    """Five messages of one key, offsets 0 to 4."""
    shell = Shell(order=Order.KEY)
    shell.send(*(message(offset) for offset in range(5)))
    return shell


def acquired(shell: Shell, run_max: int = 10, count: int = 10, member: str = "anna") -> list[int]:
    ranges = shell.acquire(member, count, run_max=run_max)
    return [offset for first, last in ranges for offset in range(first, last + 1)]


def test_a_run_has_the_first_messages_of_a_key_and_no_more_than_asked_for(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    assert acquired(shell) == []


def test_without_a_run_a_key_has_one_message_in_flight(shell: Shell) -> None:
    assert acquired(shell, run_max=1) == [0]


def test_a_run_leaves_room_for_nothing_beyond_what_was_asked_for(shell: Shell) -> None:
    shell.send(message(5, b"b"))
    assert acquired(shell, run_max=4, count=5) == [0, 1, 2, 3, 5]


def test_a_key_is_blocked_until_all_of_its_run_is_done(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    for offset in (1, 0):
        shell.acknowledge(ACCEPT, offset)
        assert acquired(shell) == []
    shell.acknowledge(ACCEPT, 2)
    assert acquired(shell) == [3, 4]


def test_the_first_of_a_run_that_comes_back_goes_out_without_what_is_in_flight_behind_it(
    shell: Shell,
) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.acknowledge(RELEASE, 0, delay_ms=0)
    shell.acknowledge(ACCEPT, 1)
    assert acquired(shell, member="ben") == [0]  # 2 is still being worked on
    shell.acknowledge(ACCEPT, 0, member="ben")
    assert acquired(shell, member="ben") == []
    shell.acknowledge(RELEASE, 2, delay_ms=0)
    assert acquired(shell, member="ben") == [2, 3, 4]


def test_one_from_the_middle_that_comes_back_goes_before_what_is_behind_it(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.acknowledge(RELEASE, 1, delay_ms=0)
    assert acquired(shell, member="ben") == []  # 0 is before it
    shell.acknowledge(ACCEPT, 0)
    assert acquired(shell, member="ben") == [1]  # 2 is still being worked on
    shell.acknowledge(ACCEPT, 2)
    shell.acknowledge(ACCEPT, 1, member="ben")
    assert acquired(shell, member="ben") == [3, 4]


def test_a_run_whose_locks_end_comes_again_from_its_beginning(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.wait(shell.settings.lock_ms)
    assert acquired(shell, run_max=2) == [0, 1]


def test_a_message_of_a_run_that_is_returned_does_not_count_as_delivered(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.acknowledge(RETURN, 2)
    shell.acknowledge(ACCEPT, 0, 1)
    got = shell.partition.acquire("anna", 10, shell.now, run_max=10)
    assert [(each.first, each.deliveries) for each in got] == [(2, 1), (3, 1), (4, 1)]


def test_a_run_ends_before_a_message_that_is_delayed_or_has_expired() -> None:
    shell = Shell(order=Order.KEY)
    shell.send(message(0), message(1, deliver_at_ms=shell.now.wall_ms + 1_000), message(2))
    assert acquired(shell) == [0]
    shell = Shell(order=Order.KEY)
    shell.send(message(0), message(1, expires_at_ms=shell.now.wall_ms + 1_000), message(2))
    shell.now = shell.now._replace(ms=shell.now.ms + 1_000)
    assert acquired(shell) == [0]


def test_what_came_back_into_the_middle_of_a_key_can_be_accepted_late(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.acknowledge(RELEASE, 1, delay_ms=0)
    shell.acknowledge(ACCEPT, 1, unknown_below=0)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 3, unknown_below=0)  # it was never delivered
    shell.wait(shell.settings.lock_ms)
    assert acquired(shell) == [0, 2, 3, 4]


def test_a_whole_run_can_be_accepted_when_its_node_has_forgotten_who_had_it(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.crash(*(message(offset) for offset in range(5)))
    shell.acknowledge(ACCEPT, 0, 2, unknown_below=5)
    assert acquired(shell) == [3, 4]


def test_retention_may_take_a_part_of_a_run(shell: Shell) -> None:
    assert acquired(shell, run_max=3) == [0, 1, 2]
    shell.partition.log_starts_at(2)
    shell.partition.check()
    assert acquired(shell) == []
    shell.acknowledge(RELEASE, 2, delay_ms=0)
    assert acquired(shell) == [2, 3, 4]
