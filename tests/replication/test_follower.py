"""A follower knows where to fetch, and what an answer asks of its log."""

from __future__ import annotations

import pytest

from postroad.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    StorageFailed,
    UnknownLeaderEpoch,
    UnknownTopicId,
)
from postroad.log.epochs import LeaderEpochs
from postroad.replication.divergence import NO_EPOCH, EpochEnd
from postroad.replication.follower import LATER, NOBODY, SOON, Follower, Step


def follower(log_start: int = 0, end: int = 10, last_epoch: int = 3, watermark: int = 8) -> Follower:
    """A log that follows node 1 in epoch 4."""
    following = Follower(
        log_start=log_start, end_offset=end, last_epoch=last_epoch, safe_offset=end, watermark=watermark
    )
    following.follow(1, 4)
    return following


def test_records_are_appended_and_fetched_on_when_they_are_safe() -> None:
    following = follower()
    assert following.answered(4, 10, watermark=9, log_start=0) is Step.APPEND
    assert following.watermark == 9
    following.appended(15, 4)
    assert not following.may_fetch(0)
    following.safe(12)
    assert not following.may_fetch(0)
    following.safe(15)
    assert following.may_fetch(0)
    assert (following.offset, following.last_epoch) == (15, 4)
    following.check()


def test_what_follows_is_read_ahead_while_what_came_is_not_safe() -> None:
    following = follower()
    assert not following.may_read_ahead(0)  # nothing came of this leader
    following.answered(4, 10, watermark=9, log_start=0)
    following.appended(15, 4)
    assert following.may_read_ahead(0)
    assert not following.may_fetch(0)
    assert following.answered(4, 15, watermark=12, log_start=0) is Step.APPEND
    following.appended(20, 4)
    following.safe(15)
    assert (following.offset, following.safe_offset, following.watermark) == (20, 15, 12)
    following.pause(100)
    assert not following.may_read_ahead(99)
    following.check()


def test_nothing_is_read_ahead_of_another_leader() -> None:
    following = follower()
    following.answered(4, 10, watermark=9, log_start=0)
    following.appended(15, 4)
    following.follow(2, 5)
    assert not following.may_read_ahead(0)


def test_a_log_is_not_cut_while_something_is_on_its_way_to_the_disk() -> None:
    following = follower()
    following.answered(4, 10, watermark=9, log_start=0)
    following.appended(15, 4)
    epochs = LeaderEpochs()
    assert following.diverged(4, 15, EpochEnd(3, 8), epochs, 0) is Step.STALE
    assert following.answered(4, 15, watermark=12, log_start=12, purged=20) is Step.STALE
    assert following.refused(4, 15, OffsetOutOfRange.code, 20, 0) is Step.STALE
    assert following.begins_at(14) is Step.STALE
    following.safe(15)
    assert following.may_fetch(0)
    assert following.answered(4, 15, watermark=12, log_start=12, purged=20) is Step.RESET


def test_the_watermark_follows_the_leaders_as_far_as_the_log_is_safe() -> None:
    following = follower()
    following.answered(4, 10, watermark=20, log_start=0)
    assert following.watermark == 10
    following.appended(30, 4)
    following.safe(30)
    assert following.watermark == 20
    following.answered(4, 30, watermark=15, log_start=0)
    assert following.watermark == 20


def test_the_start_follows_the_leaders_but_not_above_the_watermark() -> None:
    following = follower()
    following.answered(4, 10, watermark=9, log_start=5)
    assert following.log_start == 5
    following.answered(4, 10, watermark=9, log_start=10)
    assert following.log_start == 9
    following.check()


@pytest.mark.parametrize(("epoch", "offset"), [(3, 10), (5, 10), (4, 9), (4, 11)])
def test_an_answer_from_before_a_change_is_stale(epoch: int, offset: int) -> None:
    following = follower()
    epochs = LeaderEpochs([(3, 0)])
    assert following.answered(epoch, offset, 10, 0) is Step.STALE
    assert following.diverged(epoch, offset, EpochEnd(3, 0), epochs, 0) is Step.STALE
    assert following.refused(epoch, offset, OffsetOutOfRange.code, 50, 0) is Step.STALE
    assert following.watermark == 8


def test_nothing_is_fetched_while_the_partition_has_no_leader() -> None:
    following = follower()
    following.follow(NOBODY, 5)
    assert not following.may_fetch(10**9)
    following.follow(2, 6)
    assert following.may_fetch(0)


# -- parting ---------------------------------------------------------------------------------------------


def test_the_log_is_cut_where_the_leaders_epoch_ends() -> None:
    following = follower()
    assert following.diverged(4, 10, EpochEnd(3, 7), LeaderEpochs([(3, 0)]), 0) is Step.TRUNCATE
    assert following.target == 7
    assert not following.may_fetch(0)
    following.truncated(7, 3)
    assert following.may_fetch(0)
    assert (following.offset, following.safe_offset, following.watermark) == (7, 7, 7)
    following.check()


def test_the_log_is_cut_where_the_own_epoch_ends_if_that_is_lower() -> None:
    following = follower()
    following.diverged(4, 10, EpochEnd(2, 9), LeaderEpochs([(2, 0), (3, 6)]), 0)
    assert following.target == 6


def test_a_log_that_parted_before_its_start_is_dropped() -> None:
    following = follower(log_start=5)
    assert following.diverged(4, 10, EpochEnd(2, 3), LeaderEpochs([(3, 5)]), 1) is Step.RESET
    assert following.target == 1
    following.reset(1)
    assert (following.offset, following.last_epoch, following.watermark) == (1, NO_EPOCH, 1)
    following.check()


def test_an_empty_log_whose_leader_lost_what_was_deleted_here_is_dropped() -> None:
    following = follower(log_start=10)
    assert following.diverged(4, 10, EpochEnd(3, 7), LeaderEpochs([(3, 0)]), 2) is Step.RESET
    assert following.target == 2
    assert not following.may_fetch(0)


def test_the_log_is_cut_at_its_start() -> None:
    following = follower(log_start=5)
    assert following.diverged(4, 10, EpochEnd(2, 5), LeaderEpochs([(2, 0), (3, 5)]), 0) is Step.TRUNCATE
    assert following.target == 5


def test_answers_that_come_while_the_log_is_cut_are_stale() -> None:
    following = follower()
    epochs = LeaderEpochs([(3, 0)])
    following.diverged(4, 10, EpochEnd(3, 7), epochs, 0)
    assert following.answered(4, 10, 10, 0) is Step.STALE
    assert following.diverged(4, 10, EpochEnd(3, 7), epochs, 0) is Step.STALE


def test_a_new_leader_is_not_asked_before_the_cut_is_done() -> None:
    following = follower()
    following.diverged(4, 10, EpochEnd(3, 7), LeaderEpochs([(3, 0)]), 0)
    following.follow(2, 5)
    assert not following.may_fetch(0)
    following.truncated(7, 3)
    assert following.may_fetch(0)


# -- errors ----------------------------------------------------------------------------------------------


def test_a_log_that_ends_before_the_leaders_starts_is_reset() -> None:
    following = follower()
    assert following.refused(4, 10, OffsetOutOfRange.code, 50, 0) is Step.RESET
    assert following.target == 50
    assert not following.may_fetch(0)
    following.reset(50)
    assert following.may_fetch(0)
    assert (following.log_start, following.offset, following.last_epoch) == (50, 50, -1)
    following.check()


def test_an_empty_log_beyond_the_leaders_end_is_reset() -> None:
    following = follower(log_start=10, last_epoch=-1)
    assert following.refused(4, 10, OffsetOutOfRange.code, 2, 0) is Step.RESET
    assert following.target == 2


@pytest.mark.parametrize("leader_start", [-1, 0, 10])
def test_a_log_with_records_is_not_thrown_away_because_of_an_odd_answer(leader_start: int) -> None:
    following = follower()
    assert following.refused(4, 10, OffsetOutOfRange.code, leader_start, 0) is Step.WAIT


def test_an_empty_log_that_starts_where_the_leaders_does_is_not_reset_for_ever() -> None:
    following = follower(log_start=10, last_epoch=-1)
    assert following.refused(4, 10, OffsetOutOfRange.code, 10, 0) is Step.WAIT


@pytest.mark.parametrize(
    "code",
    [FencedLeaderEpoch.code, UnknownLeaderEpoch.code, NotLeaderOrFollower.code, UnknownTopicId.code, 999],
)
def test_a_leader_that_is_not_ready_is_asked_again_soon(code: int) -> None:
    following = follower()
    assert following.refused(4, 10, code, -1, 1_000) is Step.WAIT
    assert following.wait_until_ms == 1_000 + SOON.first_ms
    assert not following.may_fetch(1_000)
    assert following.may_fetch(1_000 + SOON.first_ms)


@pytest.mark.parametrize("code", [CorruptMessage.code, StorageFailed.code, -1])
def test_damage_is_looked_at_again_later(code: int) -> None:
    following = follower()
    following.refused(4, 10, code, -1, 0)
    assert following.wait_until_ms == LATER.first_ms


def test_waits_double_up_to_a_bound_and_end_with_an_answer() -> None:
    following = follower()
    waits = []
    for _ in range(12):
        following.failed(0)
        waits.append(following.wait_until_ms)
    assert waits[:3] == [200, 400, 800]
    assert waits[-1] == LATER.max_ms
    following.answered(4, 10, 8, 0)
    following.failed(0)
    assert following.wait_until_ms == LATER.first_ms


def test_a_new_leader_is_asked_at_once() -> None:
    following = follower()
    following.failed(0)
    following.follow(2, 5)
    assert following.may_fetch(0)


# -- what was found on the disk --------------------------------------------------------------------------


def test_a_watermark_beyond_the_log_is_not_believed() -> None:
    assert follower(end=5, watermark=8).watermark == 5


def test_what_was_deleted_had_been_committed() -> None:
    assert follower(log_start=9, watermark=0).watermark == 9


def test_a_sync_of_what_was_cut_since_makes_nothing_safe() -> None:
    following = follower()
    following.answered(4, 10, 8, 0)
    following.appended(12, 4)
    following.follow(2, 5)
    following.diverged(5, 12, EpochEnd(3, 7), LeaderEpochs([(3, 0), (4, 10)]), 0)
    following.truncated(7, 3)
    following.safe(12)
    assert following.safe_offset == 7


def test_a_log_begins_with_the_batch_in_which_the_leaders_starts() -> None:
    following = follower(log_start=10)
    assert following.begins_at(8) is Step.RESET
    assert following.target == 8
    following.reset(8)
    assert (following.log_start, following.offset, following.watermark) == (8, 8, 8)
    following.check()
    assert following.answered(4, 8, watermark=14, log_start=10) is Step.APPEND
    following.appended(14, 4)
    following.safe(14)
    assert (following.offset, following.watermark, following.log_start) == (14, 14, 10)
    following.check()


def test_a_log_begins_anew_where_its_leader_has_dropped_tombstones_beyond_its_end() -> None:
    following = follower(end=10)
    assert following.answered(4, 10, watermark=30, log_start=2, purged=11) is Step.RESET
    assert (following.target, following.target_purged) == (2, 11)
    assert not following.may_fetch(0)
    following.reset(2)
    assert following.may_fetch(0)
    following.check()
    assert following.answered(4, 2, watermark=30, log_start=2, purged=11) is Step.APPEND


def test_a_log_that_has_all_that_its_leader_dropped_goes_on() -> None:
    following = follower(end=10)
    assert following.answered(4, 10, watermark=30, log_start=0, purged=0) is Step.APPEND
    following.appended(20, 4)
    following.safe(20)
    assert following.answered(4, 20, watermark=30, log_start=0) is Step.APPEND


@pytest.mark.parametrize("purged", [0, 7, 12])
def test_a_log_that_began_anew_does_so_again_if_its_leader_has_dropped_other_tombstones(purged: int) -> None:
    """What it has copied may be a value whose tombstone another leader dropped."""
    following = follower(end=3, watermark=0)
    assert following.answered(4, 3, watermark=30, log_start=0, purged=9) is Step.RESET
    following.reset(0)
    following.answered(4, 0, watermark=30, log_start=0, purged=9)
    following.appended(5, 4)
    following.safe(5)
    assert following.answered(4, 5, watermark=30, log_start=0, purged=purged) is Step.RESET
    assert following.target_purged == purged
    following.reset(0)
    assert following.answered(4, 0, watermark=30, log_start=0, purged=purged) is Step.APPEND


def test_a_log_that_is_reset_for_another_reason_keeps_its_purged_offset() -> None:
    """Else a leader whose log starts inside of a batch would have it begin anew again and again."""
    following = follower(end=3, watermark=0)
    following.answered(4, 3, watermark=30, log_start=2, purged=9)
    following.reset(2)
    assert following.begins_at(1) is Step.RESET
    following.reset(1)
    assert following.answered(4, 1, watermark=30, log_start=2, purged=9) is Step.APPEND
