"""What a subscription promises about each message (S1 to S6), its backoff, delay and expiry."""

from __future__ import annotations

from typing import Any

import pytest

from postroad.errors import InvalidRecordState, InvalidRequest
from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.settings import Backoff, Order
from postroad.queues.share_partition import AckBatch
from postroad.queues.update import Dying, Reason
from tests.queues.shell import ACCEPT, REJECT, RELEASE, RENEW, RETURN, Shell

# -- S1: every record ends acknowledged or archived ----------------------------------------------------------


def test_what_a_member_held_is_available_at_once_when_it_leaves() -> None:
    shell = Shell(backoff=Backoff(1000))
    shell.send(QueueEntry(0, 9))
    assert shell.acquire("anna", 6) == [(0, 5)]
    shell.settle(shell.partition.release_member("anna", shell.now))
    assert shell.acquire("ben") == [(0, 5), (6, 9)]


def test_record_comes_back_when_its_consumer_dies() -> None:
    shell = Shell(lock_ms=30_000)
    shell.send(QueueEntry(0, 0))
    shell.acquire("anna")
    shell.wait(30_000)
    assert shell.acquire("ben") == [(0, 0)]


def test_archived_record_is_dying_until_its_copy_is_buried() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 2))
    shell.acquire()
    shell.acknowledge(REJECT, 1)
    at = shell.now.wall_ms
    assert list(shell.partition.ledger.dying) == [Dying(1, 1, Reason.REJECTED, 1, at, at)]
    shell.crash(QueueEntry(0, 2))
    assert len(shell.partition.ledger.dying) == 1
    shell.partition.ledger.apply(shell.partition.bury([(1, 1)]))
    assert not shell.partition.ledger.dying
    assert shell.acquire() == [(0, 0), (2, 2)]


def test_without_dead_letters_an_archived_record_is_done() -> None:
    shell = Shell(dead_letters=False, delivery_limit=1)
    shell.send(QueueEntry(0, 1))
    shell.acquire()
    shell.acknowledge(REJECT, 0)
    shell.acknowledge(RELEASE, 1)
    assert shell.partition.start == 2
    assert not shell.partition.ledger.dying


# -- S2: held by one member until the lock ends --------------------------------------------------------------


def test_acquired_record_is_not_given_to_another_member() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 9))
    assert shell.acquire("anna", 4) == [(0, 3)]
    assert shell.acquire("ben", 4) == [(4, 7)]


def test_lock_ends_at_its_millisecond() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire()
    assert shell.partition.next_deadline() == shell.now.ms + 100
    shell.wait(99)
    assert shell.acquire() == []
    shell.wait(1)
    assert shell.acquire() == [(0, 0)]


def test_lock_of_nothing_is_never_held() -> None:
    shell = Shell(lock_ms=0, delivery_limit=0)
    shell.send(QueueEntry(0, 0))
    assert shell.acquire() == [(0, 0)]
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0)
    shell.wait(0)
    assert shell.acquire() == [(0, 0)]
    assert shell.partition.ledger.attempts.find(0) is not None


def test_renewed_lock_ends_later() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 9))
    shell.acquire()
    shell.wait(60)
    shell.acknowledge(RENEW, 2, 3)
    shell.acknowledge(RENEW, 5, lock_ms=500)
    shell.wait(40)
    assert shell.acquire("ben") == [(0, 1), (4, 4), (6, 9)]
    shell.wait(60)
    assert shell.acquire("ben") == [(2, 3)]
    shell.acknowledge(ACCEPT, 5)
    assert shell.partition.ledger.done.contains(5)


def test_request_may_ask_for_its_own_lock() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire(lock_ms=5_000)
    shell.wait(4_999)
    assert shell.acquire() == []


# -- S3: the delivery count ----------------------------------------------------------------------------------


def test_delivery_count_rises_by_one_for_each_acquisition_and_stops_at_the_limit() -> None:
    shell = Shell(delivery_limit=3)
    shell.send(QueueEntry(0, 0))
    counts = []
    for end in (RELEASE, None, RELEASE):
        counts.append(shell.partition.acquire("anna", 1, shell.now)[0].deliveries)
        shell.acknowledge(RELEASE, 0) if end else shell.wait(30_000)
    assert counts == [1, 2, 3]
    assert shell.acquire() == []
    (dying,) = shell.partition.ledger.dying
    assert (dying.reason, dying.deliveries) == (Reason.ATTEMPTS, 3)
    assert dying.last_ms - dying.first_ms == 30_000


def test_reason_of_the_last_release_is_that_of_the_dead_letter() -> None:
    shell = Shell(delivery_limit=2)
    shell.send(QueueEntry(0, 0))
    for text in ("first", "last"):
        shell.acquire()
        shell.acknowledge(RELEASE, 0, reason=text)
    (dying,) = shell.partition.ledger.dying
    assert (dying.reason, dying.text) == (Reason.ATTEMPTS, "last")


def test_delivery_count_survives_a_crash() -> None:
    shell = Shell(delivery_limit=2)
    shell.send(QueueEntry(0, 0))
    shell.acquire()
    shell.acknowledge(RELEASE, 0)
    shell.crash(QueueEntry(0, 0))
    assert shell.partition.acquire("anna", 1, shell.now)[0].deliveries == 2
    shell.acknowledge(RELEASE, 0)
    assert len(shell.partition.ledger.dying) == 1


def test_returned_record_was_not_delivered_however_often() -> None:
    shell = Shell(delivery_limit=1, backoff=Backoff(1000))
    shell.send(QueueEntry(0, 2))
    for member in ("anna", "ben", "cleo"):
        (got,) = shell.partition.acquire(member, 10, shell.now)
        assert got == (0, 2, 1)
        shell.acknowledge(RETURN, 0, 2, member=member)
    assert shell.log == [], "there is nothing to be kept"
    assert not shell.holdings.by_member


def test_return_takes_back_no_delivery_but_its_own() -> None:
    shell = Shell(delivery_limit=3)
    shell.send(QueueEntry(0, 0))
    shell.acquire()
    shell.acknowledge(RELEASE, 0)
    shell.acquire()
    shell.acknowledge(RETURN, 0)
    shell.crash(QueueEntry(0, 0))
    assert shell.partition.acquire("anna", 1, shell.now)[0].deliveries == 2


def test_record_that_is_held_no_longer_can_not_be_returned() -> None:
    shell = Shell(lock_ms=100, delivery_limit=1)
    shell.send(QueueEntry(0, 1))
    shell.acquire()
    shell.wait(100)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(RETURN, 0)
    assert len(shell.partition.ledger.dying) == 1


def test_returned_record_keeps_its_place_in_its_order() -> None:
    shell = Shell(order=Order.KEY)
    shell.send(QueueEntry(0, 2, b"k"))
    assert shell.acquire() == [(0, 0)]
    shell.acknowledge(RETURN, 0)
    assert shell.acquire("ben") == [(0, 0)]


def test_record_that_was_not_sent_was_not_delivered() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 9))
    shell.acquire("anna", 10)
    shell.partition.give_back([(4, 9)], "anna")
    assert shell.holdings.by_member == {"anna": 4}
    (got,) = shell.partition.acquire("ben", 10, shell.now)
    assert got == (4, 9, 1)


def test_records_over_a_lowered_limit_are_archived_instead_of_delivered() -> None:
    shell = Shell(delivery_limit=5)
    shell.send(QueueEntry(0, 1))
    for _ in range(3):
        shell.acquire(count=1)
        shell.acknowledge(RELEASE, 0)
    shell.partition.change_settings(shell.settings._replace(delivery_limit=2))
    assert shell.acquire() == [(1, 1)]
    assert [(each.first, each.reason) for each in shell.partition.ledger.dying] == [(0, Reason.ATTEMPTS)]


# -- S4: an accept that was answered is for ever -------------------------------------------------------------


def test_accepted_record_is_never_delivered_again_also_after_a_crash() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 9))
    shell.acquire()
    shell.acknowledge(ACCEPT, 3, 5)
    shell.crash(QueueEntry(0, 9))
    assert shell.acquire() == [(0, 2), (6, 9)]


def test_accept_that_could_not_be_written_leaves_the_lock_as_it_was() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 9))
    shell.acquire()
    settlement = shell.partition.acknowledge("anna", [AckBatch(2, 4, (ACCEPT,))], shell.now)
    assert shell.partition.in_flight == shell.holdings.total == 7
    shell.partition.unsettle(settlement, shell.now)
    shell.partition.check()
    assert shell.partition.in_flight == shell.holdings.total == 10
    shell.acknowledge(ACCEPT, 0, 9)
    assert shell.partition.start == 10


def test_record_that_is_being_settled_is_neither_held_nor_available() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire()
    settlement = shell.partition.acknowledge("anna", [AckBatch(0, 0, (RELEASE,))], shell.now)
    assert shell.acquire("ben") == []
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 0)
    shell.settle(settlement)
    assert shell.acquire("ben") == [(0, 0)]


# -- S5: an acknowledgement without a valid lock changes nothing ---------------------------------------------


def test_acknowledgement_counts_whole_or_not_at_all() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 9))
    shell.acquire("anna", 5)
    shell.acquire("ben", 5)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(ACCEPT, 3, 6, member="anna")
    assert shell.partition.in_flight == 10
    shell.acknowledge(ACCEPT, 0, 4, member="anna")


def test_acknowledgement_after_the_lock_has_ended_is_refused_before_anyone_noticed() -> None:
    shell = Shell(lock_ms=100)
    shell.send(QueueEntry(0, 0))
    shell.acquire()
    late = shell.now._replace(ms=shell.now.ms + 100)
    with pytest.raises(InvalidRecordState):
        shell.partition.acknowledge("anna", [AckBatch(0, 0, (ACCEPT,))], late)


@pytest.mark.parametrize(
    "batches",
    [
        [AckBatch(3, 2, (1,))],
        [AckBatch(0, 2, (1, 1))],
        [AckBatch(0, 2, ())],
        [AckBatch(0, 0, (5,))],
        [AckBatch(0, 0, (-1,))],
        [AckBatch(0, 2, (1,)), AckBatch(2, 3, (1,))],
        [AckBatch(4, 5, (1,)), AckBatch(0, 1, (1,))],
        [AckBatch(-1, 0, (1,))],
    ],
)
def test_acknowledgement_that_contradicts_itself_is_refused(batches: list[AckBatch]) -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 9))
    shell.acquire()
    with pytest.raises(InvalidRequest):
        shell.partition.acknowledge("anna", batches, shell.now)
    assert shell.partition.in_flight == 10


def test_each_record_of_a_batch_has_its_own_end() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 5))
    shell.acquire()
    batch = AckBatch(0, 5, (ACCEPT, RELEASE, REJECT, RENEW, 0, ACCEPT))
    shell.settle(shell.partition.acknowledge("anna", [batch], shell.now))
    states = [each.state for each in shell.partition.peek(0, 3, shell.now)]
    assert states == ["done", "available", "dying", "held"]
    assert list(shell.partition.ledger.done) == [(4, 5)]


# -- S6: the start never falls, and the window is bounded ----------------------------------------------------


def test_start_rises_over_what_is_done_and_what_is_not_there() -> None:
    shell = Shell()
    shell.send(QueueEntry(3, 4), QueueEntry(7, 9), QueueEntry(12, 20))
    shell.acquire()
    shell.acknowledge(ACCEPT, 7, 9)
    assert shell.partition.start == 3  # what is not there was told along the way
    shell.acknowledge(ACCEPT, 3, 4)
    assert shell.partition.start == 12
    assert not shell.partition.ledger.done


def test_start_follows_the_log_when_retention_takes_what_was_held() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 99))
    shell.acquire(count=10)
    shell.partition.log_starts_at(5)
    assert shell.partition.start == 5
    assert shell.partition.in_flight == shell.holdings.total == 5
    shell.acknowledge(ACCEPT, 5, 6)
    assert shell.partition.ledger.start == 7  # and with the next update the ledger follows


@pytest.mark.parametrize("limit", ["partition_locks_max", "member_locks_max", "locks_max"])
def test_no_more_is_in_flight_than_each_limit_allows(limit: str) -> None:
    limits: dict[str, Any] = {limit: 7}
    shell = Shell(**limits)
    shell.send(QueueEntry(0, 99))
    assert shell.acquire("anna", 5) == [(0, 4)]
    assert shell.acquire("anna", 5) == [(5, 6)]
    assert shell.acquire("anna", 5) == []
    shell.acknowledge(ACCEPT, 0)
    assert shell.acquire("anna", 5) == [(7, 7)]


def test_limits_of_a_subscription_count_over_its_partitions() -> None:
    holdings = Holdings()
    one, other = Shell(holdings, locks_max=5), Shell(holdings, locks_max=5)
    for shell in (one, other):
        shell.send(QueueEntry(0, 9))
    assert one.acquire(count=3) == [(0, 2)]
    assert other.acquire(count=3) == [(0, 1)]
    one.partition.close()
    assert other.acquire(count=9) == [(2, 4)]


# -- backoff, delay, expiry ----------------------------------------------------------------------------------


def test_released_record_waits_longer_after_each_delivery() -> None:
    shell = Shell(backoff=Backoff(100, 2.0, 300), delivery_limit=0)
    shell.send(QueueEntry(0, 0))
    for wait in (100, 200, 300, 300):
        shell.acquire()
        shell.acknowledge(RELEASE, 0)
        shell.wait(wait - 1)
        assert shell.acquire() == []
        shell.wait(1)
        assert shell.partition.has_available(shell.now)


def test_expired_lock_backs_off_like_a_release() -> None:
    shell = Shell(lock_ms=50, backoff=Backoff(100))
    shell.send(QueueEntry(0, 0))
    shell.acquire()
    shell.wait(50)
    assert shell.acquire() == []
    shell.wait(100)
    assert shell.acquire() == [(0, 0)]


def test_release_may_ask_for_its_own_delay() -> None:
    shell = Shell(backoff=Backoff(100))
    shell.send(QueueEntry(0, 1))
    shell.acquire()
    shell.acknowledge(RELEASE, 0, delay_ms=0)
    shell.acknowledge(RELEASE, 1, delay_ms=7)
    assert shell.acquire() == [(0, 0)]
    shell.wait(7)
    assert shell.acquire() == [(1, 1)]


def test_delayed_record_is_available_at_its_time_and_holds_up_nobody() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 4, deliver_at_ms=shell.now.wall_ms + 1000), QueueEntry(5, 9))
    assert shell.acquire() == [(5, 9)]
    assert shell.partition.next_deadline() == shell.now.ms + 1000
    shell.wait(999)
    assert shell.acquire() == []
    shell.wait(1)
    assert shell.acquire() == [(0, 4)]


def test_record_that_was_not_delivered_in_time_is_archived() -> None:
    shell = Shell()
    soon = shell.now.wall_ms + 100
    shell.send(
        QueueEntry(0, 1, expires_at_ms=soon), QueueEntry(2, 3, expires_at_ms=soon - 100), QueueEntry(4, 4)
    )
    assert [(each.first, each.last) for each in shell.partition.ledger.dying] == [(2, 3)]
    shell.wait(100)
    assert shell.acquire() == [(4, 4)]
    assert list(shell.partition.ledger.dying) == [Dying(0, 3, Reason.EXPIRED, 0, 0, 0)]


def test_record_that_expires_while_it_is_held_may_still_be_accepted() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 1, expires_at_ms=shell.now.wall_ms + 100))
    shell.acquire()
    shell.wait(200)
    shell.acknowledge(ACCEPT, 0)
    shell.acknowledge(RELEASE, 1)
    assert shell.acquire() == []
    assert [each.first for each in shell.partition.ledger.dying] == [1]


# -- at most once, seek, peek --------------------------------------------------------------------------------


def test_at_most_once_is_done_before_it_is_sent() -> None:
    shell = Shell(at_most_once=True)
    shell.send(QueueEntry(0, 9))
    shell.settle(shell.partition.finish(shell.acquire("anna", 5)))
    assert shell.partition.start == 5
    shell.acknowledge(RELEASE, 0, 4)  # whatever is said of it now
    shell.crash(QueueEntry(0, 9))
    assert shell.acquire() == [(5, 9)]


def test_seek_forgets_what_was_done_and_who_holds_what() -> None:
    shell = Shell()
    shell.send(QueueEntry(0, 9))
    shell.acquire(count=6)
    shell.acknowledge(ACCEPT, 0, 3)
    late = shell.partition.acknowledge("anna", [AckBatch(4, 5, (ACCEPT,))], shell.now)
    shell.partition.ledger.apply(shell.partition.reset(2))
    shell.partition.after_reset(shell.now)
    shell.settle(late)  # decided before the seek: it speaks of another generation
    assert (shell.partition.start, shell.partition.frontier, shell.holdings.total) == (2, 2, 0)
    shell.send(QueueEntry(2, 9))
    assert shell.acquire() == [(2, 9)]


def test_peek_tells_every_state_and_touches_nothing() -> None:
    shell = Shell(order=Order.KEY, lock_ms=100)
    later = shell.now.wall_ms + 1000
    shell.send(
        *(QueueEntry(offset, offset, b"k%d" % offset) for offset in range(5)),
        QueueEntry(5, 5, b"k3"),
        QueueEntry(6, 6, b"d", deliver_at_ms=later),
    )
    shell.acquire(count=4)
    shell.acknowledge(ACCEPT, 0)
    shell.acknowledge(REJECT, 1)
    shell.partition.acknowledge("anna", [AckBatch(2, 2, (RELEASE,))], shell.now)
    peeked = shell.partition.peek(0, 7, shell.now)
    assert [(each.first, each.last, each.state) for each in peeked] == [
        (0, 0, "done"),
        (1, 1, "dying"),
        (2, 2, "settling"),
        (3, 3, "held"),
        (4, 4, "available"),
        (5, 5, "waiting"),
        (6, 6, "delayed"),
        (7, 7, "available"),
    ]
    assert peeked[3][3:] == (0, "anna", shell.now.wall_ms + 100, 1)
    assert peeked[6].available_at_ms == later
    assert shell.partition.peek(0, 7, shell.now) == peeked
