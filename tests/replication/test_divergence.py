"""Two logs agree where they part by their leader epochs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from postroad.log.epochs import LeaderEpochs
from postroad.replication.divergence import NO_EPOCH, EpochEnd, diverging, truncation
from tests.replication.model_log import ModelLog, Record


def log_of(*epochs: int) -> ModelLog:
    log = ModelLog(syncs=False)
    for value, epoch in enumerate(epochs):
        log.append(Record(epoch, value))
    return log


def ask(leader: ModelLog, follower: ModelLog) -> EpochEnd | None:
    return diverging(leader.epochs, leader.end, follower.last_epoch, follower.end)


def test_a_follower_that_is_behind_has_not_parted() -> None:
    assert ask(log_of(1, 1, 2), log_of(1, 1)) is None
    assert ask(log_of(1, 1, 2), log_of()) is None


def test_a_follower_with_a_longer_epoch_has_parted_where_the_leaders_ends() -> None:
    assert ask(log_of(1, 2), log_of(1, 1, 1)) == EpochEnd(1, 1)


def test_an_epoch_that_the_leader_never_saw_is_answered_with_the_one_before() -> None:
    leader, follower = log_of(1, 1, 3), log_of(1, 2, 2)
    parting = ask(leader, follower)
    assert parting == EpochEnd(1, 2)
    assert truncation(follower.epochs, follower.end, parting) == 1


def test_an_epoch_that_has_begun_without_a_record_ends_the_one_before() -> None:
    leader = log_of(1, 1)
    leader.epochs.begin(3, 2)
    assert ask(leader, log_of(1, 1, 1)) == EpochEnd(1, 2)
    assert ask(leader, log_of(1, 2)) == EpochEnd(1, 2)


def test_an_epoch_that_is_newer_than_all_of_the_leaders_is_answered_with_its_last() -> None:
    assert ask(log_of(1, 1), log_of(1, 5)) == EpochEnd(1, 2)
    assert ask(log_of(), log_of(1, 5)) == EpochEnd(NO_EPOCH, 0)
    assert truncation(LeaderEpochs([(1, 0), (5, 1)]), 2, EpochEnd(NO_EPOCH, 0)) == 0


EPOCHS = st.lists(st.integers(1, 6), max_size=8).map(sorted)


@given(EPOCHS, EPOCHS, EPOCHS, st.booleans())
def test_asking_again_ends_with_the_longest_common_past(
    common: list[int], mine: list[int], theirs: list[int], begun: bool
) -> None:
    """Epochs have one leader, so no epoch is in both tails."""
    last = common[-1] if common else 0
    tail = [epoch for epoch in mine if epoch >= last]
    other = [epoch for epoch in theirs if epoch > last and epoch not in tail]
    leader, follower = log_of(*common, *tail), log_of(*common)
    for number, epoch in enumerate(other):
        follower.append(Record(epoch, 100 + number))
    if begun:
        leader.epochs.begin(7, leader.end)
    for _ in range(len(other) + 1):
        parting = ask(leader, follower)
        if parting is None:
            break
        before = follower.end
        follower.truncate(truncation(follower.epochs, follower.end, parting))
        assert follower.end < before
    assert ask(leader, follower) is None
    assert follower.records == log_of(*common).records
