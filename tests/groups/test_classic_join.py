from __future__ import annotations

import pytest

from postroad.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    RebalanceInProgress,
    UnknownMemberId,
)
from postroad.groups.answers import MemberIdGiven
from postroad.groups.requests import MemberIdentity
from postroad.groups.settings import GroupSettings
from tests.groups.shell import GROUP, Shell, subscription


@pytest.fixture
def shell() -> Shell:
    return Shell()


def state(shell: Shell) -> str:
    return shell.groups.describe_classic(GROUP).state


def test_newcomer_is_given_an_id_before_it_joins(shell: Shell) -> None:
    token = shell.join()
    assert shell.answers[token] == MemberIdGiven("m1")
    assert shell.joined(shell.join("m1")).member_id == "m1"


def test_old_client_joins_without_asking_for_an_id(shell: Shell) -> None:
    answer = shell.joined(shell.join(v4=False))
    assert (answer.member_id, answer.leader, answer.generation) == ("m1", "m1", 1)
    assert [m.member_id for m in answer.members] == ["m1"]


def test_id_that_is_not_used_expires(shell: Shell) -> None:
    shell.join()
    shell.advance(10_000)
    assert isinstance(shell.answers[shell.join("m1")], UnknownMemberId)
    assert shell.groups.list() == []


def test_rebalance_waits_for_an_id_that_was_handed_out(shell: Shell) -> None:
    (first, *_), _ = shell.stable_group(1)
    shell.join()  # an id is handed out
    again = shell.join(first)
    assert again not in shell.answers
    shell.advance(10_000)  # … and not used
    assert shell.joined(again).generation == 2


def test_unknown_member_id_is_refused(shell: Shell) -> None:
    assert isinstance(shell.answers[shell.join("ghost")], UnknownMemberId)


def test_empty_group_id_is_refused(shell: Shell) -> None:
    assert isinstance(shell.answers[shell.join(group="")], InvalidGroupId)


@pytest.mark.parametrize("session_ms", [5_999, 30 * 60_000 + 1])
def test_session_timeout_out_of_range_is_refused(shell: Shell, session_ms: int) -> None:
    assert isinstance(shell.answers[shell.join(session_ms=session_ms)], InvalidSessionTimeout)


def test_member_without_protocols_is_refused(shell: Shell) -> None:
    assert isinstance(shell.answers[shell.join(protocols=())], InconsistentGroupProtocol)
    assert isinstance(shell.answers[shell.join(protocol_type="")], InconsistentGroupProtocol)


def test_member_without_a_common_protocol_is_refused(shell: Shell) -> None:
    shell.stable_group(1)
    refused = shell.join(protocols=(("sticky", b""),))
    assert isinstance(shell.answers[refused], InconsistentGroupProtocol)
    assert isinstance(shell.answers[shell.join(protocol_type="connect")], InconsistentGroupProtocol)


def test_protocol_is_chosen_by_vote_among_the_common_ones(shell: Shell) -> None:
    a = shell.join(v4=False, protocols=(("x", b"ax"), ("y", b"ay")))
    shell.joined(a)
    b = shell.join(v4=False, protocols=(("y", b"by"), ("x", b"bx")))
    c = shell.join(v4=False, protocols=(("z", b""), ("y", b"cy"), ("x", b"cx")))
    again = shell.join("m1", protocols=(("x", b"ax"), ("y", b"ay")))
    answer = shell.joined(again)
    assert answer.protocol == "y"
    assert [m.metadata for m in answer.members] == [b"ay", b"by", b"cy"]
    assert shell.joined(b).members == shell.joined(c).members == ()


def test_group_takes_no_more_members_than_its_maximum() -> None:
    shell = Shell(GroupSettings(initial_rebalance_delay_ms=0, group_size_max=2))
    shell.stable_group(2)
    assert isinstance(shell.answers[shell.join()], GroupMaxSizeReached)


def test_empty_group_waits_a_moment_for_more_members() -> None:
    settings = GroupSettings(
        initial_rebalance_delay_alone_ms=3_000,
        initial_rebalance_delay_ms=3_000,
        initial_rebalance_delay_max_ms=60_000,
    )
    shell = Shell(settings)
    first = shell.join(v4=False)
    shell.advance(2_000)
    second = shell.join(v4=False)
    shell.advance(1_000)
    assert first not in shell.answers, "the wait is prolonged by the second"
    shell.advance(3_000)
    assert shell.joined(first).generation == shell.joined(second).generation == 1


def test_wait_of_an_empty_group_ends_with_the_rebalance_timeout() -> None:
    settings = GroupSettings(
        initial_rebalance_delay_alone_ms=3_000,
        initial_rebalance_delay_ms=3_000,
        initial_rebalance_delay_max_ms=60_000,
    )
    shell = Shell(settings)
    tokens = []
    for _ in range(3):
        tokens.append(shell.join(v4=False, rebalance_ms=7_000))
        shell.advance(2_500)
    assert all(token in shell.answers for token in tokens)


def test_lone_member_of_a_new_group_waits_only_a_moment() -> None:
    shell = Shell(GroupSettings())
    _, token = shell.new_member()
    shell.advance(99)
    assert token not in shell.answers
    shell.advance(1)
    assert shell.joined(token).generation == 1


def test_members_that_start_together_get_one_generation() -> None:
    shell = Shell(GroupSettings())
    tokens = []
    for _ in range(4):
        tokens.append(shell.new_member()[1])
        shell.advance(40 if len(tokens) == 1 else 190)
    assert not any(token in shell.answers for token in tokens)
    shell.advance(10)
    assert {shell.joined(token).generation for token in tokens} == {1}


def test_new_group_waits_for_a_client_that_was_just_given_an_id() -> None:
    shell = Shell(GroupSettings())
    _, first = shell.new_member()
    shell.advance(40)
    given = shell.answers[shell.join()]
    assert isinstance(given, MemberIdGiven)
    shell.advance(100)
    second = shell.join(given.member_id)
    shell.advance(200)
    assert shell.joined(first).generation == shell.joined(second).generation == 1


def test_new_group_waits_no_longer_than_its_maximum() -> None:
    shell = Shell(GroupSettings())
    tokens = [shell.new_member()[1]]
    for _ in range(10):
        shell.advance(40)
        tokens.append(shell.new_member()[1])
    for _ in range(4):
        shell.advance(150)
        tokens.append(shell.new_member()[1])
    assert shell.ms == 2_000, "a second after the first join"
    shell.advance(0)
    assert {shell.joined(token).generation for token in tokens[:-1]} == {1}


def test_group_that_has_members_does_not_wait_for_more() -> None:
    shell = Shell(GroupSettings())
    _, token = shell.new_member()
    shell.advance(100)
    leader = shell.joined(token).leader
    shell.sync(leader, 1, {leader: b"all"})
    _, newcomer = shell.new_member()
    again = shell.join(leader)
    assert shell.joined(newcomer).generation == shell.joined(again).generation == 2


def test_new_member_starts_a_rebalance_that_members_learn_of_by_heartbeat(shell: Shell) -> None:
    (leader, *_), generation = shell.stable_group(1)
    shell.beat(leader, generation)
    _, newcomer = shell.new_member()
    assert state(shell) == "PreparingRebalance"
    with pytest.raises(RebalanceInProgress):
        shell.beat(leader, generation)
    again = shell.join(leader)
    assert shell.joined(newcomer).generation == shell.joined(again).generation == generation + 1


def test_member_that_does_not_rejoin_in_time_is_dropped(shell: Shell) -> None:
    (leader, other), generation = shell.stable_group(2)
    again = shell.join(leader)
    for _ in range(12):
        shell.advance(5_000)
        if state(shell) == "PreparingRebalance":
            with pytest.raises(RebalanceInProgress):
                shell.beat(other, generation)
    answer = shell.joined(again)
    assert [m.member_id for m in answer.members] == [leader]


def test_repeated_join_of_a_stable_follower_starts_no_rebalance(shell: Shell) -> None:
    (leader, follower), generation = shell.stable_group(2)
    assert shell.joined(shell.join(follower)).generation == generation
    shell.beat(leader, generation)


def test_join_of_the_stable_leader_starts_a_rebalance(shell: Shell) -> None:
    (leader, _), _ = shell.stable_group(2)
    shell.join(leader)
    assert state(shell) == "PreparingRebalance"


def test_follower_with_a_changed_subscription_starts_a_rebalance(shell: Shell) -> None:
    (_, follower), _ = shell.stable_group(2)
    shell.join(follower, topics=("t", "u"))
    assert state(shell) == "PreparingRebalance"


def test_join_that_is_sent_again_replaces_the_one_that_waits(shell: Shell) -> None:
    (leader, follower), generation = shell.stable_group(2)
    first = shell.join(leader)
    second = shell.join(leader)
    assert isinstance(shell.answers[first], RebalanceInProgress)
    shell.join(follower)
    assert shell.joined(second).generation == generation + 1


def test_first_join_that_waits_too_long_is_given_up() -> None:
    settings = GroupSettings(initial_rebalance_delay_ms=0, new_member_join_timeout_ms=20_000)
    shell = Shell(settings)
    shell.stable_group(1, session_ms=60_000, rebalance_ms=100_000)
    _, waiting = shell.new_member(session_ms=60_000, rebalance_ms=100_000)
    shell.advance(20_000)
    assert isinstance(shell.answers[waiting], UnknownMemberId)


class TestStaticMembers:
    def test_returns_without_a_rebalance_and_keeps_its_assignment(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1"))
        shell.sync(old.member_id, 1, {old.member_id: b"all"}, instance_id="i1")
        new = shell.joined(shell.join(instance_id="i1"))
        assert (new.generation, state(shell)) == (1, "Stable")
        assert new.member_id != old.member_id
        assert new.leader == new.member_id
        assert new.skip_assignment
        assert [m.member_id for m in new.members] == [new.member_id]
        assert shell.synced(shell.sync(new.member_id, 1, instance_id="i1")) == b"all"

    def test_old_client_that_returns_as_leader_is_told_of_another_leader(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1"))
        shell.sync(old.member_id, 1, {old.member_id: b"all"}, instance_id="i1")
        new = shell.joined(shell.join(instance_id="i1", v9=False))
        assert new.leader == old.member_id
        assert not new.skip_assignment
        assert new.members == ()

    def test_former_self_is_fenced(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1")).member_id
        shell.sync(old, 1, {old: b"all"}, instance_id="i1")
        shell.joined(shell.join(instance_id="i1"))
        with pytest.raises(FencedInstanceId):
            shell.beat(old, 1, instance_id="i1")
        assert isinstance(shell.answers[shell.join(old, instance_id="i1")], FencedInstanceId)
        assert isinstance(shell.answers[shell.sync(old, 1, instance_id="i1")], FencedInstanceId)

    def test_takes_over_a_join_that_waits(self, shell: Shell) -> None:
        shell.stable_group(1)
        waiting = shell.join(instance_id="i1")
        shell.join(instance_id="i1")
        assert isinstance(shell.answers[waiting], FencedInstanceId)

    def test_returning_with_other_topics_starts_a_rebalance(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1")).member_id
        shell.sync(old, 1, {old: b"all"}, instance_id="i1")
        assert shell.joined(shell.join(instance_id="i1", topics=("u",))).generation == 2

    def test_returning_while_the_leader_assigns_starts_a_rebalance(self, shell: Shell) -> None:
        shell.joined(shell.join(instance_id="i1"))
        assert shell.joined(shell.join(instance_id="i1")).generation == 2

    def test_one_that_is_away_stays_a_member_through_a_rebalance(self, shell: Shell) -> None:
        away = shell.joined(shell.join(instance_id="i1", session_ms=100_000)).member_id
        shell.sync(away, 1, {away: b"all"}, instance_id="i1")
        _, token = shell.new_member(session_ms=100_000)
        shell.advance(60_000)  # the rebalance ends without it
        assert away in {m.member_id for m in shell.joined(token).members}

    def test_stays_gone_after_its_session(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1")).member_id
        shell.sync(old, 1, {old: b"all"}, instance_id="i1")
        shell.advance(10_000)
        assert state(shell) == "Empty"

    def test_failed_append_of_a_return_changes_nothing(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1")).member_id
        shell.sync(old, 1, {old: b"all"}, instance_id="i1")
        shell.failing = True
        shell.join(instance_id="i1")
        shell.failing = False
        shell.beat(old, 1, instance_id="i1")

    def test_leaves_by_instance_id_alone(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1")).member_id
        shell.sync(old, 1, {old: b"all"}, instance_id="i1")
        shell.leave(MemberIdentity("", "i1"))
        assert state(shell) == "Empty"


def test_changed_protocol_of_a_lone_member_is_taken_up(shell: Shell) -> None:
    (only,), _ = shell.stable_group(1)
    answer = shell.joined(shell.join(only, protocols=(("sticky", subscription("t")),)))
    assert answer.protocol == "sticky"
