"""Acknowledgements in transactions: neither held nor available until the end, and then done or back."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ConcurrentTransactions, InvalidProducerEpoch, InvalidRecordState, InvalidRequest
from postroad.queues.acknowledgement import PLEDGE
from postroad.queues.entry import QueueEntry
from postroad.queues.ledger import Ledger
from postroad.queues.settings import Backoff, Order
from postroad.queues.share_partition import AckBatch
from postroad.queues.update import Ended, Pledged, Released, Update, decode, encode_key, encode_update
from tests.queues.shell import ACCEPT, KEY, REJECT, Shell

PRODUCER, OTHER = 7, 8
MINUTE_MS = 60_000


class Transacting(Shell):
    def pledge(self, first: int, last: int, epoch: int = 0, member: str = "anna") -> None:
        self.settle(
            self.partition.pledge(member, [AckBatch(first, last, (PLEDGE,))], PRODUCER, epoch, self.now)
        )

    def end(self, commit: bool, epoch: int = 1, producer: int = PRODUCER) -> None:
        self.settle(self.partition.end_transactions(producer, epoch, commit, self.now))

    def states(self, count: int = 10) -> list[tuple[int, int, str]]:
        return [each[:3] for each in self.partition.peek(0, count, self.now)]


def with_messages(count: int = 10, **settings: Any) -> Transacting:
    shell = Transacting(**settings)
    shell.send(QueueEntry(0, count - 1))
    return shell


def test_a_pledged_message_is_neither_held_nor_available_and_its_lock_stands_still() -> None:
    shell = with_messages(lock_ms=1_000)
    shell.acquire()
    shell.pledge(2, 4)
    assert shell.states() == [(0, 1, "held"), (2, 4, "pledged"), (5, 9, "held")]
    shell.wait(MINUTE_MS)
    assert shell.acquire("ben") == [(0, 1), (5, 9)]
    shell.settle(shell.partition.release_member("anna", shell.now))
    assert (2, 4, "pledged") in shell.states()


def test_a_commit_makes_it_done() -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(0, 3)
    shell.end(commit=True)
    assert shell.partition.ledger.start == 4
    assert not shell.partition.ledger.pledges


def test_an_abort_releases_it_with_its_deliveries_and_after_its_backoff() -> None:
    shell = with_messages(backoff=Backoff(500))
    shell.acquire()
    shell.pledge(0, 3)
    shell.end(commit=False)
    assert next(iter(shell.partition.ledger.attempts))[:3] == (0, 3, 1)
    assert shell.acquire("ben") == []
    shell.wait(500)
    (again,) = shell.partition.acquire("ben", 4, shell.now)
    assert again == (0, 3, 2)


def test_an_abort_after_the_last_attempt_gives_it_up() -> None:
    shell = with_messages(delivery_limit=1)
    shell.acquire()
    shell.pledge(0, 3)
    shell.end(commit=False)
    assert [(each.first, each.last, each.reason) for each in shell.partition.ledger.dying] == [
        (0, 3, "attempts")
    ]


def test_an_end_ends_the_transactions_of_its_producer_alone() -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(0, 3)
    shell.end(commit=True, producer=OTHER)
    assert shell.states()[0] == (0, 3, "pledged")


def test_a_commit_is_about_its_own_transaction_and_what_an_older_one_left_is_released() -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(0, 1, epoch=0)
    shell.pledge(2, 4, epoch=3)
    shell.end(commit=True, epoch=4)
    assert shell.states()[:3] == [(0, 1, "available"), (2, 4, "done"), (5, 9, "held")]


def test_what_is_not_held_is_not_pledged_and_nothing_of_the_rest() -> None:
    shell = with_messages()
    shell.acquire(count=4)
    with pytest.raises(InvalidRecordState):
        shell.pledge(2, 5)
    with pytest.raises(InvalidRecordState):
        shell.pledge(0, 0, member="ben")
    for kind in (ACCEPT, REJECT):
        with pytest.raises(InvalidRequest):
            shell.partition.pledge("anna", [AckBatch(0, 0, (kind,))], PRODUCER, 0, shell.now)
    with pytest.raises(InvalidRequest):
        shell.acknowledge(PLEDGE, 0)
    assert shell.states()[0] == (0, 3, "held")


def test_a_pledge_can_not_be_settled_in_another_way() -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(0, 3)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(REJECT, 0)
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(1, 0, unknown_below=10)
    with pytest.raises(InvalidRecordState):
        shell.pledge(0, 0)


def test_a_late_accept_of_a_pledged_message_is_refused_also_before_it_is_read_again() -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(0, 3)
    shell.crash()
    with pytest.raises(InvalidRecordState):
        shell.acknowledge(1, 0, unknown_below=10)


def test_a_pledge_that_comes_behind_the_end_of_its_transaction_is_refused() -> None:
    shell = with_messages()
    shell.acquire()
    shell.end(commit=True)
    with pytest.raises(InvalidProducerEpoch):
        shell.pledge(0, 3, epoch=0)
    shell.pledge(0, 3, epoch=1)


def test_an_end_waits_for_pledges_that_are_on_their_way_to_the_disk() -> None:
    shell = with_messages()
    shell.acquire()
    pledge = shell.partition.pledge("anna", [AckBatch(0, 3, (PLEDGE,))], PRODUCER, 0, shell.now)
    with pytest.raises(ConcurrentTransactions):
        shell.end(commit=True)
    shell.settle(pledge)
    shell.end(commit=True)
    assert shell.partition.ledger.start == 4


def test_a_pledge_that_could_not_be_written_is_held_as_before() -> None:
    shell = with_messages(lock_ms=1_000)
    shell.acquire()
    pledge = shell.partition.pledge("anna", [AckBatch(0, 3, (PLEDGE,))], PRODUCER, 0, shell.now)
    shell.partition.unsettle(pledge, shell.now)
    assert [state for _, _, state in shell.states()] == ["held", "held"]
    shell.wait(1_000)
    assert shell.acquire("ben") == [(0, 9)]


@pytest.mark.parametrize("commit", [True, False])
def test_a_crash_keeps_pledges_until_their_transaction_ends(commit: bool) -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(2, 4)
    shell.crash(QueueEntry(0, 9))
    assert shell.acquire("ben") == [(0, 1), (5, 9)]
    shell.end(commit)
    assert shell.acquire("ben") == ([] if commit else [(2, 4)])


def test_a_key_waits_for_its_pledged_message() -> None:
    shell = Transacting(order=Order.KEY)
    entries = [QueueEntry(0, 0, b"a"), QueueEntry(1, 1, b"a"), QueueEntry(2, 2, b"b")]
    shell.send(*entries)
    assert shell.acquire() == [(0, 0), (2, 2)]
    shell.pledge(0, 0)
    assert shell.acquire() == []
    shell.crash(*entries)
    assert shell.acquire() == [(2, 2)]
    shell.end(commit=True)
    assert shell.acquire() == [(1, 1)]


def test_pledged_messages_count_for_the_limit_of_the_partition() -> None:
    shell = with_messages(partition_locks_max=4)
    assert shell.acquire() == [(0, 3)]
    shell.pledge(0, 2)
    assert shell.acquire("ben") == []
    shell.end(commit=True)
    assert shell.acquire("ben") == [(4, 6)]


def test_a_seek_forgets_pledges() -> None:
    shell = with_messages()
    shell.acquire()
    shell.pledge(0, 3)
    update = shell.partition.reset(0)
    shell.log.append(update)
    shell.partition.ledger.apply(update)
    shell.partition.after_reset(shell.now)
    shell.send(QueueEntry(0, 9))
    shell.end(commit=True)
    assert shell.acquire("ben") == [(0, 9)]


# --- the ledger ------------------------------------------------------------------------------------------


RANGES = st.tuples(st.integers(0, 20), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@st.composite
def histories(draw: st.DrawFn) -> list[Update]:
    """What two producers do, one transaction after the other: pledges of what nobody else has pledged, and an
    end for all of them; beside them others release and accept."""
    history, epochs = [Update(1, 0)], {PRODUCER: 0, OTHER: 0}
    ledger = rebuilt(history)
    for _ in range(draw(st.integers(0, 14))):
        first, last = draw(RANGES)
        producer, what = draw(st.sampled_from([PRODUCER, OTHER])), draw(st.integers(0, 5))
        free = not ledger.pledges.cut(first, last)
        if what < 3 and free:
            counted = [Released(first, last, 1, 100, 100)]
            update = Update(1, released=counted, pledged=[Pledged(first, last, producer, epochs[producer])])
        elif what == 3 and free:
            update = Update(1, done=[(first, last)])
        else:
            epochs[producer] += 1
            mine = [row[:2] for row in ledger.pledges.of(producer, epochs[producer])]
            done = [(low, high) for low, high in mine] if draw(st.booleans()) else []
            update = Update(1, done=done, ended=[Ended(producer, epochs[producer])])
        history.append(update)
        ledger.apply(update)
        ledger.check()
    return history


def rebuilt(updates: list[Update]) -> Ledger:
    ledger = Ledger(KEY)
    for update in updates:
        ledger.apply(update)
        ledger.check()
    return ledger


def told(ledger: Ledger) -> tuple[int, list[tuple[str, int]], dict[int, tuple[int, ...]], dict[int, int]]:
    """What it says of each offset, however its ranges are cut."""
    tables = {"done": ledger.done, "dying": ledger.dying, "released": ledger.attempts}
    states = sorted((name, o) for name, table in tables.items() for o in range(60) if table.contains(o))
    pledges = {o: row[2:] for o in range(60) if (row := ledger.pledges.find(o)) is not None}
    return ledger.start, states, pledges, ledger.pledges.ended


@settings(max_examples=200, deadline=None)
@given(history=histories(), data=st.data())
def test_pledges_are_rebuilt_wherever_snapshots_lie(history: list[Update], data: st.DataObject) -> None:
    """Also from a snapshot whose parts are made, and written, while the ledger goes on; and from records that
    are read twice. No pledge comes back whose transaction has ended."""
    at = data.draw(st.integers(1, len(history)))
    ledger = rebuilt(history[:at])
    parts = ledger.snapshots(ranges_max=data.draw(st.integers(1, 3)))
    log = [next(parts)]
    late: list[Update] = []
    for update in history[at:]:
        ledger.apply(update)
        log.append(update)
        made = list(islice(parts, data.draw(st.integers(0, 2))))
        (late if data.draw(st.booleans()) else log).extend(made)
    log += [*parts, *late]
    whole = told(rebuilt(history))
    assert told(rebuilt(log)) == whole
    assert told(rebuilt([*history, *log])) == whole
    assert told(rebuilt([*history, *history[data.draw(st.integers(0, len(history))) :]])) == whole


def test_a_record_with_pledges_is_read_as_it_was_written_and_an_old_one_has_none() -> None:
    update = Update(1, pledged=[Pledged(2, 4, PRODUCER, 3)], ended=[Ended(OTHER, 5)])
    assert decode(encode_key(KEY), encode_update(update)) == (KEY, update)
    assert decode(encode_key(KEY), b'{"generation":1}') == (KEY, Update(1))


def test_a_log_that_lost_its_end_leaves_pledges_below_it() -> None:
    ledger = rebuilt(
        [Update(1, 0), Update(1, released=[Released(2, 9, 1, 1, 1)], pledged=[Pledged(2, 9, PRODUCER, 0)])]
    )
    correction = ledger.ending_at(5)
    assert correction is not None
    ledger.apply(correction)
    ledger.check()
    assert list(ledger.pledges) == [Pledged(2, 4, PRODUCER, 0)]


def test_what_a_record_says_of_offsets_that_were_lost_counts_no_more() -> None:
    update = Update(
        1, pledged=[Pledged(2, 9, PRODUCER, 0), Pledged(12, 14, PRODUCER, 0)], ended=[Ended(OTHER, 5)]
    )
    assert update.below(5) == Update(1, pledged=[Pledged(2, 4, PRODUCER, 0)], ended=[Ended(OTHER, 5)])
