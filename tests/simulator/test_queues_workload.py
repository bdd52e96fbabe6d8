"""What the simulator checks of subscriptions: seeds that hold, and histories that each check must refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType
from postroad.wire import header_names as names
from simulator.campaign import Campaign, play_apart
from simulator.checkers import (
    s1_ends,
    s2_one_holder,
    s3_delivery_count,
    s4_accepted,
    s5_valid_lock,
    s6_start,
    s7_committed,
    s8_key_order,
    s9_delays,
    s10_backoff,
    s11_dead_letters,
    s12_moves,
)
from simulator.clock import EPOCH_MS
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import (
    Delivery,
    Headers,
    Letter,
    LostFetch,
    Move,
    MoveKind,
    Outcome,
    Position,
    QueueHistory,
    Saying,
    SeenStarts,
    Span,
    Stray,
)
from simulator.workloads.queue_plan import QueuePlan
from simulator.workloads.queue_topic import FoundMessage, QueueTopic, SentMessage

PART = TopicPartition("jobs", 0)
PLAN = QueuePlan(
    name="workers",
    topics=("jobs",),
    lock_ms=2_000,
    delivery_limit=3,
    backoff_ms=400,
    backoff_factor=2.0,
    backoff_max_ms=1_500,
    backoff_jitter=0.0,
    by_key=True,
    fair=False,
    dead_letters=True,
    session_ms=45_000,
    partition_locks_max=2,
)
Check = Callable[[QueueCase], Iterator[Violation]]


class Past:
    """A history that is made by hand: messages of one partition, each with the key that all have."""

    def __init__(self, messages: int = 1, plan: QueuePlan = PLAN, headers: Headers = ()) -> None:
        self.history = QueueHistory(plan)
        self.topic = QueueTopic("jobs", 1, {}, first_offsets={PART: 0})
        self.history.lags = {PART: 0}
        for offset in range(messages):
            position, value = Position("jobs", 0, offset), b"job %d" % offset
            self.topic.sent[value] = SentMessage(value, b"key", headers, 1.0, position, 1.1)
            self.topic.found[position] = FoundMessage(position, EPOCH_MS, b"key", value, headers)

    def deliver(
        self, offset: int, at: float, *, to: str = "ann", count: int = 1, session: Span | None = None
    ) -> Delivery:
        """Asked for 10 ms before, in a session that lasts."""
        position = Position("jobs", 0, offset)
        found = self.topic.found[position]
        delivery = Delivery(
            position=position,
            value=found.value,
            key=found.key,
            headers=found.headers,
            timestamp=found.timestamp,
            count=count,
            member=to,
            asked_at=at - 0.01,
            came_at=at,
            lock_s=PLAN.lock_s,
            session=session or _lasting(),
            membership=_lasting(),
        )
        self.history.add(delivery)
        return delivery

    def deliver_lost(self, offset: int, at: float, *, to: str = "ann") -> Delivery:
        """A message that had this offset before a power cut took it."""
        delivery = replace(self.deliver(offset, at, to=to), value=b"lost", said=[])
        self.history.deliveries[delivery.position][-1] = delivery
        return delivery

    def case(self, **known: object) -> QueueCase:
        return replace(QueueCase(self.history, {"jobs": self.topic}), **known)  # type: ignore[arg-type]

    def bury(self, offset: int, reason: str, deliveries: int = 1) -> Letter:
        position = Position("jobs", 0, offset)
        headers = {
            names.DEAD_REASON: reason.encode(),
            names.DEAD_DELIVERIES: b"%d" % deliveries,
            names.DEAD_AT: b"%d" % EPOCH_MS,
        }
        letter = Letter(position, b"key", self.topic.found[position].value, headers)
        self.history.letters.setdefault(position, []).append(letter)
        return letter


def _lasting() -> Span:
    span = Span()
    span.prove(1_000.0, 0.0)
    return span


def say(
    delivery: Delivery,
    kind: AckType,
    at: float,
    outcome: Outcome = Outcome.DONE,
    *,
    delay_s: float | None = None,
    no_lock: bool = False,
) -> Saying:
    """It is answered 10 ms later."""
    saying = Saying(kind, at, delay_s, PLAN.lock_s, "", outcome, at + 0.01, no_lock)
    delivery.said.append(saying)
    return saying


def broken(check: Check, past: Past, **known: object) -> list[str]:
    return [violation.invariant for violation in check(past.case(**known))]


# --- seeds


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_subscriptions_keep_their_promises_whatever_fails(seed: int) -> None:
    result = play_apart(Campaign(seconds=10.0, workloads=("queues",)), seed)
    assert [str(violation) for violation in result.violations] == []


# --- S1


def test_s1_message_that_was_accepted_or_has_a_letter_has_ended() -> None:
    past = Past(2)
    say(past.deliver(0, 5.0), AckType.ACCEPT, 5.1)
    past.bury(1, "rejected")
    assert broken(s1_ends.check, past) == []


def test_s1_message_that_nobody_heard_of_has_vanished() -> None:
    assert broken(s1_ends.check, Past()) == ["S1"]


def test_s1_message_whose_accept_was_refused_has_vanished_but_not_if_nobody_knows() -> None:
    past = Past()
    accept = say(past.deliver(0, 5.0), AckType.ACCEPT, 5.1, Outcome.REFUSED)
    assert broken(s1_ends.check, past) == ["S1"]
    accept.outcome = Outcome.UNKNOWN
    assert broken(s1_ends.check, past) == []


def test_s1_rejected_message_without_a_letter_has_vanished_unless_letters_are_off() -> None:
    past = Past()
    say(past.deliver(0, 5.0), AckType.REJECT, 5.1)
    assert broken(s1_ends.check, past) == ["S1"]
    past.history.plan = replace(PLAN, dead_letters=False)
    assert broken(s1_ends.check, past) == []


def test_s1_message_that_was_deleted_before_its_end_has_vanished() -> None:
    past = Past()
    past.topic.found.clear()
    past.topic.first_offsets = {PART: 1}
    assert broken(s1_ends.check, past) == ["S1"]
    assert broken(s1_ends.check, past, cuts=[2.0]) == []  # the power cut may have taken the message itself


def test_s1_subscription_that_is_behind_after_the_calm_is_stuck() -> None:
    past = Past()
    past.history.lags = {PART: 1}
    assert broken(s1_ends.check, past) == ["S1"]


def test_s1_what_was_accepted_before_a_seek_must_end_again() -> None:
    past = Past(2)
    for offset in range(2):
        say(past.deliver(offset, 5.0), AckType.ACCEPT, 5.1)
    past.history.moves.append(Move(MoveKind.SEEK, {PART: 1}, 6.0, 6.1, Outcome.DONE))
    assert broken(s1_ends.check, past) == ["S1"]
    say(past.deliver(1, 7.0, to="bob"), AckType.ACCEPT, 7.1)
    assert broken(s1_ends.check, past) == []


def test_s1_accept_of_a_lost_message_may_end_the_one_that_has_its_offset_now() -> None:
    past = Past()
    lost = past.deliver_lost(0, 3.0)
    say(lost, AckType.ACCEPT, 3.1)
    assert broken(s1_ends.check, past) == ["S1"], "its member did not have the other one yet"
    past.deliver(0, 5.0)
    assert broken(s1_ends.check, past) == ["S1"]
    say(lost, AckType.ACCEPT, 5.1)
    assert broken(s1_ends.check, past) == []


def test_s1_accept_of_a_lost_message_ends_none_that_another_member_has() -> None:
    past = Past()
    say(past.deliver_lost(0, 3.0), AckType.ACCEPT, 5.1)
    past.deliver(0, 5.0, to="bob")
    assert broken(s1_ends.check, past) == ["S1"]
    past.history.lost_fetches = [LostFetch("ann", 4.0, 5.0)]  # in its answer it may have been
    assert broken(s1_ends.check, past) == []


# --- S2


def test_s2_two_members_may_have_a_message_one_after_the_other() -> None:
    past = Past()
    past.deliver(0, 5.0)
    past.deliver(0, 7.0, to="bob", count=2)
    assert broken(s2_one_holder.check, past) == []


def test_s2_message_that_comes_before_another_ones_lock_has_ended_has_two_holders() -> None:
    past = Past()
    past.deliver(0, 5.0)
    past.deliver(0, 6.9, to="bob", count=2)
    assert broken(s2_one_holder.check, past) == ["S2"]


def test_s2_release_or_a_lost_session_may_end_a_lock_early() -> None:
    past = Past()
    first = past.deliver(0, 5.0)
    past.deliver(0, 6.0, to="bob", count=2)
    release = say(first, AckType.RELEASE, 5.5, Outcome.UNKNOWN)
    assert broken(s2_one_holder.check, past) == []
    release.outcome = Outcome.REFUSED
    assert broken(s2_one_holder.check, past) == ["S2"]
    first.session = Span()
    assert broken(s2_one_holder.check, past) == []


def test_s2_renewed_lock_holds_for_longer() -> None:
    past = Past()
    renew = say(past.deliver(0, 5.0), AckType.RENEW, 6.5)
    past.deliver(0, 8.0, to="bob", count=2)
    assert broken(s2_one_holder.check, past) == ["S2"]
    renew.outcome = Outcome.UNKNOWN
    assert broken(s2_one_holder.check, past) == []


def test_s6_more_messages_in_flight_than_may_be_are_seen() -> None:
    past = Past(3)
    for offset in range(3):
        past.deliver(offset, 5.0 + offset / 10)
    assert broken(s2_one_holder.check, past) == ["S6"]


# --- S3


@pytest.mark.parametrize(("count", "expected"), [(1, ["S3"]), (2, []), (3, ["S3"]), (4, ["S3"])])
def test_s3_second_delivery_counts_as_the_second(count: int, expected: list[str]) -> None:
    past = Past()
    past.deliver(0, 5.0)
    past.deliver(0, 8.0, to="bob", count=count)
    assert broken(s3_delivery_count.check, past) == expected


def test_s3_delivery_may_not_be_counted_after_a_restart_and_counts_if_its_answer_was_lost() -> None:
    past, reopened = Past(), Span()
    reopened.prove(7.0, 7.0)
    past.deliver(0, 5.0)
    second = past.deliver(0, 8.0, to="bob", count=1, session=reopened)
    assert broken(s3_delivery_count.check, past) == []
    second.count = 3
    assert broken(s3_delivery_count.check, past) == ["S3"]
    past.history.lost_fetches.append(LostFetch("cid", 6.0, 6.5))
    assert broken(s3_delivery_count.check, past) == []


# --- S4


def test_s4_accepted_message_must_not_come_again() -> None:
    past = Past()
    accept = say(past.deliver(0, 5.0), AckType.ACCEPT, 5.1)
    past.deliver(0, 8.0, to="bob", count=2)
    assert broken(s4_accepted.check, past) == ["S4"]
    assert broken(s4_accepted.check, past, cuts=[6.0]) == []
    assert broken(s4_accepted.check, past, cuts=[4.0]) == ["S4"]
    accept.outcome = Outcome.UNKNOWN
    assert broken(s4_accepted.check, past) == []


# --- S5


def test_s5_accept_after_the_lock_must_not_count() -> None:
    past = Past()
    accept = say(past.deliver(0, 5.0), AckType.ACCEPT, 7.1)
    assert broken(s5_valid_lock.check, past) == ["S5"]
    accept.outcome = Outcome.REFUSED
    assert broken(s5_valid_lock.check, past) == []


def test_s5_accept_must_not_count_when_another_one_has_the_message() -> None:
    past, short = Past(), Span()
    first = past.deliver(0, 5.0, session=short)
    past.deliver(0, 5.5, to="bob", count=2)
    say(first, AckType.ACCEPT, 6.0)
    assert broken(s5_valid_lock.check, past) == ["S5"]


def test_s5_accept_of_a_lost_message_counts_if_its_member_has_the_one_at_its_offset() -> None:
    past = Past()
    say(past.deliver_lost(0, 3.0), AckType.ACCEPT, 7.1)
    assert broken(s5_valid_lock.check, past) == ["S5"]
    past.deliver(0, 7.0, to="bob")
    assert broken(s5_valid_lock.check, past) == ["S5"]
    past.deliver(0, 7.05)
    assert broken(s5_valid_lock.check, past) == []


def test_s5_accept_within_the_lock_must_count() -> None:
    past = Past()
    say(past.deliver(0, 5.0), AckType.ACCEPT, 6.0, Outcome.REFUSED, no_lock=True)
    assert broken(s5_valid_lock.check, past) == ["S5"]


def test_s5_who_never_got_a_message_must_not_settle_it() -> None:
    past = Past()
    saying = Saying(AckType.ACCEPT, 5.0, outcome=Outcome.DONE, told_at=5.1)
    stray = Stray(Position("jobs", 0, 0), b"job 0", "bob", saying, may_hold=False)
    past.history.strays[stray.position] = [stray]
    assert broken(s5_valid_lock.check, past) == ["S5"]
    past.history.strays[stray.position] = [stray._replace(may_hold=True)]
    assert broken(s5_valid_lock.check, past) == []


# --- S6, S7


def test_s6_start_that_falls_is_seen_unless_a_power_cut_or_an_operator_moved_it() -> None:
    past = Past()
    past.history.starts = [SeenStarts(5.0, 5.1, {PART: 4}), SeenStarts(8.0, 8.1, {PART: 3})]
    assert broken(s6_start.check, past) == ["S6"]
    assert broken(s6_start.check, past, cuts=[6.0]) == []
    past.history.moves.append(Move(MoveKind.SEEK, {PART: 3}, 6.0))
    assert broken(s6_start.check, past) == []


def test_s6_message_below_the_start_must_not_come() -> None:
    past = Past()
    past.history.starts = [SeenStarts(5.0, 5.1, {PART: 1})]
    past.deliver(0, 6.0)
    assert broken(s6_start.check, past) == ["S6"]


def test_s7_message_that_is_not_in_the_log_in_the_end_was_not_committed() -> None:
    past = Past()
    past.deliver(0, 5.0)
    assert broken(s7_committed.check, past) == []
    past.topic.found.clear()
    assert broken(s7_committed.check, past) == ["S7"]
    assert broken(s7_committed.check, past, cuts=[5.0]) == []
    past.topic.sent.clear()
    assert broken(s7_committed.check, past, cuts=[5.0]) == ["S7"]


# --- S8


def test_s8_later_message_of_a_key_waits_for_the_earlier_one() -> None:
    past = Past(2)
    accept = say(past.deliver(0, 5.0), AckType.ACCEPT, 5.5)
    past.deliver(1, 6.0, to="bob")
    assert broken(s8_key_order.check, past) == []
    accept.outcome = Outcome.REFUSED
    assert broken(s8_key_order.check, past) == ["S8"]


def test_s8_earlier_message_of_a_key_must_not_come_after_a_later_one() -> None:
    past = Past(2)
    say(past.deliver(0, 5.0), AckType.ACCEPT, 5.5, Outcome.UNKNOWN)
    past.deliver(1, 6.0, to="bob")
    past.deliver(0, 8.0, to="bob", count=2)
    assert broken(s8_key_order.check, past) == ["S8"]


def test_s8_message_after_the_last_attempt_of_an_earlier_one_may_come() -> None:
    past = Past(2)
    past.deliver(0, 5.0, count=3)
    past.deliver(1, 7.5, to="bob")
    assert broken(s8_key_order.check, past) == []


# --- S9, S10


def test_s9_message_must_not_come_before_its_time_unless_the_clock_was_set() -> None:
    due = b"%d" % (EPOCH_MS + 6_000)
    past = Past(headers=[(names.DELIVER_AT, due)])
    delivery = past.deliver(0, 5.0)
    assert broken(s9_delays.check, past) == ["S9"]
    delivery.clock_jumps = 1
    assert broken(s9_delays.check, past) == []
    past = Past(headers=[(names.DELAY_MS, b"6000")])
    past.deliver(0, 5.0)
    assert broken(s9_delays.check, past) == ["S9"]
    past = Past(headers=[(names.DELAY_MS, b"6000")])
    past.deliver(0, 6.1)
    assert broken(s9_delays.check, past) == []


@pytest.mark.parametrize(
    ("delay_s", "again_at", "expected"),
    [(None, 5.8, ["S10"]), (None, 5.95, []), (2.0, 7.4, ["S10"]), (2.0, 7.6, [])],
)
def test_s10_released_message_waits(delay_s: float | None, again_at: float, expected: list[str]) -> None:
    past = Past()
    say(past.deliver(0, 5.0), AckType.RELEASE, 5.5, delay_s=delay_s)
    past.deliver(0, again_at, to="bob", count=2)
    assert broken(s10_backoff.check, past) == expected


def test_s10_message_whose_lock_ended_waits_but_not_after_a_restart() -> None:
    past, reopened = Past(), Span()
    past.deliver(0, 5.0)
    second = past.deliver(0, 7.2, to="bob", count=2)
    assert broken(s10_backoff.check, past) == ["S10"]
    reopened.prove(7.1, 7.1)
    second.session = reopened
    assert broken(s10_backoff.check, past) == []


# --- S11, S12


def test_s11_letter_is_the_whole_message_dead_for_its_reason() -> None:
    past = Past(headers=[("colour", b"blue"), (names.DELAY_MS, b"5")])
    say(past.deliver(0, 5.0), AckType.REJECT, 5.1)
    assert broken(s11_dead_letters.check, past) == ["S11"]  # there is no letter
    letter = past.bury(0, "rejected")
    assert broken(s11_dead_letters.check, past) == ["S11"]  # it lacks the headers
    letter.headers.update({"colour": b"blue", names.SET_ASIDE[names.DELAY_MS]: b"5"})
    assert broken(s11_dead_letters.check, past) == []
    letter.headers[names.DEAD_REASON] = b"attempts"
    assert broken(s11_dead_letters.check, past) == ["S11"]
    letter.headers[names.DEAD_DELIVERIES] = b"3"
    assert broken(s11_dead_letters.check, past) == []


def test_s11_accepted_message_has_no_letter_and_a_dead_one_has_one() -> None:
    past = Past()
    past.bury(0, "attempts", 3)
    assert broken(s11_dead_letters.check, past) == []
    past.bury(0, "attempts", 3)
    assert broken(s11_dead_letters.check, past) == ["S11"]
    (sent,) = past.topic.sent.values()
    assert broken(s11_dead_letters.check, past, crashes=[sent.sent_at - 0.1]) == ["S11"]
    assert broken(s11_dead_letters.check, past, crashes=[sent.sent_at + 0.1]) == []
    say(past.deliver(0, 5.0), AckType.ACCEPT, 5.1)
    assert broken(s11_dead_letters.check, past, crashes=[sent.sent_at + 0.1]) == ["S11"]


def test_s12_nothing_from_before_a_purge_comes_after_it() -> None:
    past = Past()
    move = Move(MoveKind.PURGE, {PART: 1}, 5.0, 5.1, Outcome.DONE)
    past.history.moves.append(move)
    past.deliver(0, 6.0)
    check = partial(broken, s12_moves.check, past)
    assert check() == ["S12"]
    assert check(cuts=[5.5]) == []
    move.outcome = Outcome.UNKNOWN
    assert check() == []
