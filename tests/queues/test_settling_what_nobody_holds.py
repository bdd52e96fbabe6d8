"""Accepts that come late, in an owner's name, and what is said of messages that were done when sent."""

from __future__ import annotations

import pytest

from postroad.errors import InvalidRecordState
from postroad.queues.acknowledgement import LATE_CHANGES, NOTHING_LATE
from postroad.queues.entry import QueueEntry
from postroad.queues.settings import Order
from tests.queues.shell import ACCEPT, REJECT, RELEASE, RENEW, RETURN, Shell

# -- accepts that come late ----------------------------------------------------------------------------------


def test_record_that_was_never_delivered_can_not_be_accepted() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 999))
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0, 999, member="nobody", unknown_below=0)
    assert shell.log == []
    assert shell.acquire(count=1000) == [(0, 999)]


def test_accept_counts_after_its_lock_is_over_while_nobody_else_has_the_record() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 1))
    shell.acquire("anna")
    shell.wait(100)
    shell.acknowledge(ACCEPT, 0, member="anna", unknown_below=0)
    assert shell.acquire("ben") == [(1, 1)]
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 1, member="anna", unknown_below=0)


@pytest.mark.parametrize("kind", [RELEASE, REJECT, RENEW, RETURN])
def test_nothing_but_an_accept_counts_late(kind: int) -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.wait(100)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(kind, 0, member="anna", unknown_below=10)


def test_late_accept_needs_a_delivery_of_each_record_that_it_names() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 4))
    shell.acquire("anna", 3)
    shell.wait(100)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0, 3, member="anna", unknown_below=0)
    shell.acknowledge(ACCEPT, 0, 2, member="anna", unknown_below=0)
    assert shell.partition.start == 3


def test_record_that_was_returned_was_not_delivered_so_no_accept_of_it_comes_late() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.acknowledge(RETURN, 0, member="anna")
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0, member="anna", unknown_below=0)


def test_accept_counts_after_a_crash_that_forgot_the_delivery() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 4))
    shell.acquire("anna")
    shell.crash(QueueEntry(0, 9))
    shell.acknowledge(ACCEPT, 0, 4, member="anna", unknown_below=5)  # what lay in the log when the node began
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 5, member="anna", unknown_below=5)
    assert shell.partition.start == 5


# -- visibility timeouts that are changed late ---------------------------------------------------------------


def test_a_late_renewal_keeps_a_record_from_others_and_counts_no_delivery() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 1))
    assert shell.acquire("anna", 1) == [(0, 0)]
    shell.wait(100)
    shell.acknowledge(RENEW, 0, member="anna", unknown_below=0, late_kinds=LATE_CHANGES, lock_ms=500)
    assert shell.acquire("ben") == [(1, 1)]
    shell.wait(499)
    assert (0, 0) not in shell.acquire("ben")
    shell.wait(1)
    ((first, last, deliveries),) = shell.partition.acquire("ben", 1, shell.now)
    assert (first, last, deliveries) == (0, 0, 2)


def test_a_late_renewal_leaves_the_record_to_be_accepted_late() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.wait(100)
    for _ in range(3):
        shell.acknowledge(RENEW, 0, member="anna", unknown_below=0, late_kinds=LATE_CHANGES)
        shell.wait(99)
    shell.acknowledge(ACCEPT, 0, member="anna", unknown_below=0)
    assert shell.partition.start == 1


def test_a_late_release_makes_a_record_available_that_was_put_off() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.wait(100)
    shell.acknowledge(RENEW, 0, member="anna", unknown_below=0, late_kinds=LATE_CHANGES)
    shell.acknowledge(RELEASE, 0, member="anna", unknown_below=0, late_kinds=LATE_CHANGES, delay_ms=0)
    assert shell.acquire("ben") == [(0, 0)]


@pytest.mark.parametrize("kind", [RELEASE, RENEW])
def test_a_late_change_of_what_another_holds_or_nobody_was_given_is_refused(kind: int) -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 1))
    shell.acquire("anna", 1)
    shell.wait(100)
    shell.acquire("ben", 1)
    for offset in (0, 1, 2):
        with pytest.raises(InvalidRecordState):
            shell.acknowledge(kind, offset, member="anna", unknown_below=0, late_kinds=LATE_CHANGES)
    assert shell.acquire("cleo") == [(1, 1)]


@pytest.mark.parametrize("order", [Order.KEY, Order.PARTITION])
def test_a_late_renewal_holds_up_what_stands_behind_the_record_in_its_order(order: Order) -> None:
    shell = Shell(order=order, lock_ms=100)
    shell.send(QueueEntry(0, 1, b"k"))
    assert shell.acquire("anna") == [(0, 0)]
    shell.wait(100)
    shell.acknowledge(RENEW, 0, member="anna", unknown_below=0, late_kinds=LATE_CHANGES)
    assert shell.acquire("ben") == []
    shell.wait(100)
    assert shell.acquire("ben") == [(0, 0)]


def test_an_accept_after_its_lock_is_over_is_refused_where_nothing_may_come_late() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.wait(100)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0, member="anna", unknown_below=10, late_kinds=NOTHING_LATE)
    assert shell.acquire("ben") == [(0, 0)]


# -- at most once --------------------------------------------------------------------------------------------


def test_accept_of_what_was_held_before_the_subscription_delivered_at_most_once_is_final() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 1))
    shell.acquire("anna")
    shell.partition.change_settings(shell.settings._replace(at_most_once=True))
    shell.acknowledge(ACCEPT, 0)
    assert shell.partition.start == 1
    shell.wait(30_000)
    assert shell.acquire("ben") == [(1, 1)]


def test_whatever_is_said_of_a_record_that_was_done_when_it_was_sent_changes_nothing() -> None:
    shell = Shell(at_most_once=True)
    shell.send(QueueEntry(0, 3))
    shell.settle(shell.partition.finish(shell.acquire("anna")))
    for kind in (ACCEPT, RELEASE, REJECT, RENEW, RETURN):
        shell.acknowledge(kind, 0, 3)
    assert len(shell.log) == 1
    assert shell.acquire("ben") == []


def test_accept_of_a_record_that_is_free_again_is_refused_at_most_once_too() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.wait(100)
    shell.partition.change_settings(shell.settings._replace(at_most_once=True))
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0)


# -- what the log has lost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", Order)
def test_acquired_records_that_are_no_longer_in_the_log_are_done_and_others_move_up(order: Order) -> None:
    shell = Shell(order=order, lock_ms=0)
    shell.send(QueueEntry(0, 2, b"k"))
    lost = shell.acquire("anna")
    shell.settle(shell.partition.finish(lost))
    assert shell.partition.start == lost[-1][1] + 1
    assert not shell.holdings.by_member
    assert shell.acquire("ben") == ([] if order is Order.NONE else [(1, 1)])
