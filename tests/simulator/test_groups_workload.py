"""What the simulator checks of groups: seeds that hold, and histories that each check must refuse."""

from __future__ import annotations

import pytest

from postroad.client.groups import Committer
from simulator.campaign import Campaign, play_apart
from simulator.checkers import l5_groups, l14_commits, l14_one_owner, l14_stale
from simulator.workloads.group_history import (
    STALE_OFFSET,
    Given,
    GroupHistory,
    Hold,
    Pulse,
    Read,
    StaleCommit,
    acknowledged,
)

SESSION_S, REBALANCE_S = 6.0, 8.0


@pytest.fixture
def history() -> GroupHistory:
    return GroupHistory("readers", "news", numbered=True)


def commit(history: GroupHistory, offset: int | None, handed: float, told: float | None) -> None:
    """In partition 0; nobody was told what became of it where `told` is None."""
    writes = history.hands_over({0: offset}, handed)
    if told is not None:
        acknowledged(writes, told)


def read(history: GroupHistory, offset: int | None, asked: float, told: float) -> None:
    history.reads.append(Read(0, offset, asked, told, "somebody"))


def hold(history: GroupHistory, owner: str, since: float, beats: tuple[float, ...] = ()) -> Hold:
    pulse = Pulse(SESSION_S, REBALANCE_S, list(beats))
    made = Hold(owner, 0, since - 0.01, since, pulse)
    history.holds.append(made)
    return made


@pytest.mark.parametrize("seed", [2, 3, 11])
def test_groups_keep_what_they_promise(seed: int) -> None:
    result = play_apart(Campaign(seconds=40.0, workloads=("groups",)), seed)
    assert [str(violation) for violation in result.violations] == []
    assert result.sometimes["groups: a later generation began"]


# --- commits


def test_a_commit_that_was_acknowledged_and_is_gone_is_found(history: GroupHistory) -> None:
    commit(history, 5, 1.0, 1.1)
    commit(history, 9, 2.0, 2.1)
    read(history, 9, 3.0, 3.1)
    assert not [*l14_commits.check(history, [])]
    read(history, 5, 4.0, 4.1)
    (found,) = l14_commits.check(history, [])
    assert "read 5" in found.text
    assert "9 was committed" in found.text
    assert not [*l14_commits.check(history, [3.5])], "unless a power cut may have taken it"
    assert [*l14_commits.check(history, [1.5])], "but not one before it"


def test_what_nobody_has_committed_is_found(history: GroupHistory) -> None:
    commit(history, 5, 1.0, 1.1)
    read(history, 6, 3.0, 3.1)
    read(history, STALE_OFFSET, 3.0, 3.1)
    assert [found.text.endswith("nobody has committed") for found in l14_commits.check(history, [])] == [
        True
    ] * 2


def test_commits_at_the_same_time_and_those_in_doubt_may_come_in_any_order(history: GroupHistory) -> None:
    commit(history, 5, 1.0, 2.0)
    commit(history, 6, 1.5, 1.6)
    commit(history, 7, 3.0, None)
    for offset in (5, 6):
        read(history, offset, 2.5, 2.6)
    read(history, 6, 8.0, 8.1)
    assert not [*l14_commits.check(history, [])]
    read(history, 7, 9.0, 9.1)
    assert not [*l14_commits.check(history, [])]
    read(history, 6, 10.0, 10.1)
    assert len([*l14_commits.check(history, [])]) == 1, "what was seen once is in effect"


def test_offsets_that_come_back_after_they_were_deleted_are_found(history: GroupHistory) -> None:
    commit(history, 5, 1.0, 1.1)
    commit(history, None, 2.0, 2.1)
    read(history, None, 3.0, 3.1)
    assert not [*l14_commits.check(history, [])]
    read(history, 5, 4.0, 4.1)
    assert len([*l14_commits.check(history, [])]) == 1


def test_a_member_that_begins_elsewhere_than_at_the_commit_is_found(history: GroupHistory) -> None:
    history.begins("a member", 0, 0, 0.5, 0.6)
    commit(history, 5, 1.0, 1.1)
    history.begins("a member", 0, 5, 2.0, 2.1)
    assert not [*l14_commits.check_begins(history, [])]
    history.begins("a member", 0, 0, 3.0, 3.1)
    assert [found.invariant for found in l14_commits.check_begins(history, [])] == ["L5"]


def test_gaps_and_steps_back_within_an_assignment_are_found(history: GroupHistory) -> None:
    stretch = history.begins("a member", 0, 3, 1.0, 1.1)
    for offset in (3, 4, 6, 6):
        stretch.add(offset)
    assert [found.text.partition("got ")[2] for found in l5_groups.check(history)] == [
        "6 of partition 0 where 5 was next",
        "6 of partition 0 where 7 was next",
    ]


# --- stale commits


def test_a_stale_commit_that_is_taken_is_found(history: GroupHistory) -> None:
    history.stale.append(StaleCommit("a of 1", since=1.0, known_at=2.0, handed=3.0, is_taken=False))
    assert not [*l14_stale.check(history, [])]
    history.stale.append(StaleCommit("a of 1", since=1.0, known_at=2.0, handed=4.0, is_taken=True))
    assert len([*l14_stale.check(history, [0.5])]) == 1
    assert not [*l14_stale.check(history, [1.5])], "the group may have begun to count anew"
    assert not [*l14_stale.check(history, [2.5])], "the group may have forgotten the later generation"


def test_an_operators_commit_that_is_taken_beside_members_is_found(history: GroupHistory) -> None:
    history.operated.append((5.0, 5.1))
    history.pulses.append(Pulse(SESSION_S, REBALANCE_S, [1.0, 3.0, 5.05]))
    assert not [*l14_stale.check(history, [])], "it may have left since"
    history.pulses[0].is_answered(7.0)
    assert len([*l14_stale.check(history, [])]) == 1


def test_a_later_generation_makes_those_before_it_stale(history: GroupHistory) -> None:
    assert not history.joins(Committer("a", 1), 1.0)
    assert not history.joins(Committer("b", 1), 1.0)
    assert history.joins(Committer("b", 2), 2.0)
    assert history.superseded == [(Committer("a", 1), 1.0, 2.0), (Committer("b", 1), 1.0, 2.0)]
    apart = GroupHistory("readers", "news")
    assert not apart.joins(Committer("a", 1), 1.0)
    assert not apart.joins(Committer("b", 2), 1.0)
    assert apart.joins(Committer("a", 3), 1.0)
    assert not apart.joins(Committer("c", 3, "static"), 1.0)
    assert apart.joins(Committer("d", 3, "static"), 1.0)


# --- owners


def test_two_owners_in_one_generation_are_found(history: GroupHistory) -> None:
    history.given += [Given(1, 0, "a", 1.0, 1.1), Given(2, 0, "b", 2.0, 2.1), Given(1, 0, "a", 3.0, 3.1)]
    assert not [*l14_one_owner.check(history, [])]
    history.given.append(Given(2, 0, "a", 4.0, 4.1))
    assert len([*l14_one_owner.check(history, [])]) == 1
    assert not [*l14_one_owner.check(history, [3.0])], "the number may be used again after a power cut"


def test_a_partition_that_is_given_on_too_early_is_found(history: GroupHistory) -> None:
    first = hold(history, "a", 1.0, beats=(1.0, 3.0))
    second = hold(history, "b", 5.0)
    assert len([*l14_one_owner.check(history, [])]) == 1
    assert not [*l14_one_owner.check(history, [2.0])], "a power cut may have taken the first member"
    first.until = 4.9
    assert not [*l14_one_owner.check(history, [])], "it had been given up"
    first.until, second.since, second.asked = 100.0, 9.2, 9.1
    assert not [*l14_one_owner.check(history, [])], "the first member's session was over"
    first.pulse.answered += [5.0, 7.0, 9.0, 11.0]
    assert len([*l14_one_owner.check(history, [])]) == 1
    first.revoked = 1.1
    assert not [*l14_one_owner.check(history, [])], "it did not confirm in time"
