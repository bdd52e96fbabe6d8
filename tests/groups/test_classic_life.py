"""Sync, heartbeat, leave, silence and restarts of classic groups."""

from __future__ import annotations

from typing import Any

import pytest

from postroad.errors import (
    ApiError,
    CoordinatorNotAvailable,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from postroad.groups.answers import Left
from postroad.groups.requests import MemberIdentity
from postroad.groups.settings import GroupSettings
from tests.groups.shell import GROUP, Shell


@pytest.fixture
def shell() -> Shell:
    return Shell()


def state(shell: Shell) -> str:
    return shell.groups.describe_classic(GROUP).state


def kinds(left: object) -> list[type[ApiError] | None]:
    assert isinstance(left, Left)
    return [None if error is None else type(error) for error in left.errors]


class TestSync:
    def test_followers_wait_for_the_leaders_assignment(self, shell: Shell) -> None:
        a = shell.joined(shell.join(v4=False)).member_id
        b_token = shell.join(v4=False)
        shell.joined(shell.join(a))
        b = shell.joined(b_token).member_id
        waiting = shell.sync(b, 2)
        assert waiting not in shell.answers
        leads = shell.sync(a, 2, {a: b"0", b: b"1"})
        assert (shell.synced(leads), shell.synced(waiting)) == (b"0", b"1")
        assert state(shell) == "Stable"

    def test_member_that_syncs_later_gets_the_stored_assignment(self, shell: Shell) -> None:
        (leader, follower), generation = shell.stable_group(2)
        assert shell.synced(shell.sync(follower, generation)) == follower.encode()
        assert shell.synced(shell.sync(leader, generation)) == leader.encode()

    def test_member_that_the_leader_left_out_gets_nothing(self, shell: Shell) -> None:
        only = shell.joined(shell.join(v4=False)).member_id
        assert shell.synced(shell.sync(only, 1, {"someone": b"x"})) == b""

    def test_wrong_generation_member_or_protocol_is_refused(self, shell: Shell) -> None:
        only = shell.joined(shell.join(v4=False)).member_id
        assert isinstance(shell.answers[shell.sync(only, 7)], IllegalGeneration)
        assert isinstance(shell.answers[shell.sync("ghost", 1)], UnknownMemberId)
        assert isinstance(shell.answers[shell.sync(only, 1, group="other")], UnknownMemberId)
        wrongs: list[dict[str, Any]] = [{"protocol": "sticky"}, {"protocol_type": "connect"}]
        for wrong in wrongs:
            assert isinstance(shell.answers[shell.sync(only, 1, **wrong)], InconsistentGroupProtocol)
        assert shell.synced(shell.sync(only, 1, {only: b"x"}, protocol="range")) == b"x"

    def test_sync_that_waits_is_called_to_join_again_by_a_new_rebalance(self, shell: Shell) -> None:
        a = shell.joined(shell.join(v4=False)).member_id
        b_token = shell.join(v4=False)
        shell.joined(shell.join(a))
        waiting = shell.sync(shell.joined(b_token).member_id, 2)
        shell.join(v4=False)
        assert isinstance(shell.answers[waiting], RebalanceInProgress)
        assert isinstance(shell.answers[shell.sync(a, 2)], RebalanceInProgress)

    def test_members_that_do_not_sync_in_time_are_removed(self, shell: Shell) -> None:
        options: dict[str, Any] = {"v4": False, "rebalance_ms": 8_000}
        a = shell.joined(shell.join(**options)).member_id
        b_token = shell.join(**options)
        shell.joined(shell.join(a, **options))
        b = shell.joined(b_token).member_id
        shell.sync(a, 2, {a: b"0", b: b"1"})
        for _ in range(2):
            shell.advance(4_000)
            if state(shell) == "Stable":
                shell.beat(a, 2)
                shell.beat(b, 2)  # it lives, but never asks what it shall read
        assert state(shell) == "PreparingRebalance"
        assert [m.member_id for m in shell.joined(shell.join(a, **options)).members] == [a]

    def test_assignment_that_can_not_be_stored_is_given_to_no_one(self, shell: Shell) -> None:
        a = shell.joined(shell.join(v4=False)).member_id
        b_token = shell.join(v4=False)
        shell.joined(shell.join(a))
        b = shell.joined(b_token).member_id
        waiting = shell.sync(b, 2)
        shell.failing = True
        leads = shell.sync(a, 2, {a: b"0", b: b"1"})
        assert {type(shell.answers[token]) for token in (waiting, leads)} == {CoordinatorNotAvailable}
        assert state(shell) == "CompletingRebalance"
        shell.failing = False
        waiting = shell.sync(b, 2)
        shell.sync(a, 2, {a: b"0", b: b"1"})
        assert shell.synced(waiting) == b"1"


class TestHeartbeat:
    def test_keeps_a_member_alive(self, shell: Shell) -> None:
        (only,), generation = shell.stable_group(1)
        for _ in range(5):
            shell.advance(9_000)
            shell.beat(only, generation)
        shell.advance(10_000)
        with pytest.raises(UnknownMemberId):
            shell.beat(only, generation)
        assert state(shell) == "Empty"

    def test_wrong_generation_is_refused(self, shell: Shell) -> None:
        (only,), generation = shell.stable_group(1)
        with pytest.raises(IllegalGeneration):
            shell.beat(only, generation - 1)

    def test_unknown_group_has_no_member(self, shell: Shell) -> None:
        with pytest.raises(UnknownMemberId):
            shell.beat("m", 1)

    def test_silent_member_makes_the_others_rebalance(self, shell: Shell) -> None:
        (leader, _), generation = shell.stable_group(2)
        shell.advance(6_000)
        shell.beat(leader, generation)
        shell.advance(4_000)
        with pytest.raises(RebalanceInProgress):
            shell.beat(leader, generation)
        assert [m.member_id for m in shell.joined(shell.join(leader)).members] == [leader]

    def test_member_whose_join_waits_is_alive(self, shell: Shell) -> None:
        (leader, follower), generation = shell.stable_group(2)
        waiting = shell.join(leader)
        for _ in range(4):
            shell.advance(8_000)
            with pytest.raises(RebalanceInProgress):
                shell.beat(follower, generation)
        shell.join(follower)
        assert len(shell.joined(waiting).members) == 2

    def test_expiry_that_can_not_be_stored_is_tried_again(self, shell: Shell) -> None:
        shell.stable_group(1)
        shell.failing = True
        shell.advance(15_000)
        assert state(shell) == "Stable"
        shell.failing = False
        shell.advance(2_000)
        assert state(shell) == "Empty"


class TestLeave:
    def test_batch_is_answered_for_each_member(self, shell: Shell) -> None:
        (a, b, c), _ = shell.stable_group(3)
        left = shell.leave(MemberIdentity(a), MemberIdentity("ghost"), MemberIdentity(b, None, "done"))
        assert kinds(left) == [None, UnknownMemberId, None]
        assert [m.member_id for m in shell.joined(shell.join(c)).members] == [c]

    def test_instance_of_another_member_is_fenced(self, shell: Shell) -> None:
        shell.joined(shell.join(instance_id="i1"))
        left = shell.leave(MemberIdentity("ghost", "i1"), MemberIdentity("", "i2"))
        assert kinds(left) == [FencedInstanceId, UnknownMemberId]

    def test_last_one_leaves_an_empty_group_of_the_next_generation(self, shell: Shell) -> None:
        (a, b), generation = shell.stable_group(2)
        shell.leave(MemberIdentity(a), MemberIdentity(b))
        assert state(shell) == "Empty"
        _, token = shell.new_member()
        assert shell.joined(token).generation == generation + 2

    def test_last_leave_that_can_not_be_stored_changes_nothing(self, shell: Shell) -> None:
        (only,), generation = shell.stable_group(1)
        shell.failing = True
        shell.run(lambda: shell.groups.leave(GROUP, [MemberIdentity(only)], "t", shell.now))
        assert isinstance(shell.answers["t"], CoordinatorNotAvailable)
        shell.beat(only, generation)

    def test_unknown_group_has_no_members(self, shell: Shell) -> None:
        assert kinds(shell.leave(MemberIdentity("m"), MemberIdentity("n"))) == [UnknownMemberId] * 2

    def test_id_that_was_only_handed_out_may_leave(self, shell: Shell) -> None:
        (leader,), generation = shell.stable_group(1)
        shell.join()
        waiting = shell.join(leader)
        group = shell.groups._groups[GROUP].classic
        assert group is not None
        pending = next(iter(group.pending))
        assert kinds(shell.leave(MemberIdentity(pending))) == [None]
        assert shell.joined(waiting).generation == generation + 1

    def test_leaving_answers_the_join_that_waits(self, shell: Shell) -> None:
        (leader, _), _ = shell.stable_group(2)
        waiting = shell.join(leader)
        shell.leave(MemberIdentity(leader))
        assert isinstance(shell.answers[waiting], UnknownMemberId)


class TestRestart:
    @pytest.mark.parametrize("compacted", [False, True])
    def test_members_go_on_without_a_rebalance(self, shell: Shell, compacted: bool) -> None:
        (leader, follower), generation = shell.stable_group(2)
        before = shell.groups.describe_classic(GROUP)
        shell.restart(compacted=compacted)
        assert shell.groups.describe_classic(GROUP) == before
        shell.beat(leader, generation)
        shell.beat(follower, generation)
        assert shell.synced(shell.sync(follower, generation)) == follower.encode()
        assert shell.joined(shell.join(follower)).generation == generation

    def test_silent_members_are_noticed(self, shell: Shell) -> None:
        shell.stable_group(2)
        shell.restart()
        shell.advance(10_000)
        assert state(shell) == "Empty"

    def test_generation_that_was_not_stored_is_forgotten(self, shell: Shell) -> None:
        (leader,), generation = shell.stable_group(1)
        assert shell.joined(shell.join(leader)).generation == generation + 1
        shell.restart()
        with pytest.raises(IllegalGeneration):
            shell.beat(leader, generation + 1)
        shell.beat(leader, generation)

    def test_static_members_are_known(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i1")).member_id
        shell.sync(old, 1, {old: b"all"}, instance_id="i1")
        shell.restart()
        assert shell.joined(shell.join(instance_id="i1")).generation == 1


def test_describe_shows_metadata_while_stable_only(shell: Shell) -> None:
    (leader, _), _ = shell.stable_group(2)
    described = shell.groups.describe_classic(GROUP)
    assert (described.state, described.protocol_type, described.protocol) == ("Stable", "consumer", "range")
    assert {m.assignment for m in described.members} == {m.member_id.encode() for m in described.members}
    shell.join(leader)
    described = shell.groups.describe_classic(GROUP)
    assert (described.state, described.protocol) == ("PreparingRebalance", "")
    assert {(m.metadata, m.assignment) for m in described.members} == {(b"", b"")}
    assert shell.groups.describe_classic("nobody").state == "Dead"


def test_list_filters_by_state_and_type_in_any_case(shell: Shell) -> None:
    shell.stable_group(1)
    shell.topic("t", 1)
    shell.consumer_join("c1", "t", group_id="modern")
    everything = {(g.group_id, g.state, g.group_type) for g in shell.groups.list()}
    assert everything == {(GROUP, "Stable", "classic"), ("modern", "Stable", "consumer")}
    assert [g.group_id for g in shell.groups.list(types=["CONSUMER"])] == ["modern"]
    assert [g.group_id for g in shell.groups.list(states=["stable"], types=["classic"])] == [GROUP]
    assert shell.groups.list(states=["Empty"]) == []


def test_ten_thousand_members_are_cheap() -> None:
    shell = Shell(GroupSettings(initial_rebalance_delay_ms=1_000))
    shell.checked = False
    tokens = [shell.join(v4=False) for _ in range(10_000)]
    shell.advance(3_000)
    answers = [shell.joined(token) for token in tokens]
    leader = answers[0].leader
    shell.sync(leader, 1, {answer.member_id: b"x" for answer in answers})
    for _ in range(3):
        shell.advance(4_000)
        for answer in answers:
            shell.groups.heartbeat(GROUP, answer.member_id, None, 1, shell.now)
    shell.groups.check()
    assert state(shell) == "Stable"
