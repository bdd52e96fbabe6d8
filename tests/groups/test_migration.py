"""A group with members changes between the classic protocol and KIP-848."""

from __future__ import annotations

import pytest

from postroad.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from postroad.groups import assignment
from postroad.groups.answers import Joined, Left
from postroad.groups.requests import MemberIdentity, OffsetToCommit
from postroad.groups.settings import GroupSettings, MigrationPolicy
from tests.groups.shell import GROUP, Shell, subscription

ALL = [0, 1, 2, 3]


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    shell.topic("t", 4)
    return shell


def with_policy(policy: MigrationPolicy) -> Shell:
    shell = Shell(GroupSettings(initial_rebalance_delay_ms=0, migration=policy))
    shell.topic("t", 4)
    return shell


def classic_member(shell: Shell, partitions: list[int], **options: object) -> str:
    """A lone member of a new classic group that has assigned itself these partitions."""
    answer = shell.joined(shell.join(v4=False, **options))  # type: ignore[arg-type]
    given = assignment.encode({"t": partitions}, 1)
    instance = options.get("instance_id")
    assert instance is None or isinstance(instance, str)
    shell.sync(answer.member_id, answer.generation, {answer.member_id: given}, instance_id=instance)
    return answer.member_id


def rejoin(shell: Shell, member_id: str, owned: list[int] | None = None) -> Joined:
    metadata = subscription("t", owned={"t": owned} if owned else {})
    return shell.joined(shell.join(member_id, protocols=(("range", metadata),)))


def fetched(shell: Shell, member_id: str, generation: int) -> list[int]:
    return assignment.decode(shell.synced(shell.sync(member_id, generation))).get("t", [])


def group_type(shell: Shell) -> str:
    (listed,) = shell.groups.list()
    return listed.group_type


def owned_by(shell: Shell, member_id: str) -> list[int]:
    members = shell.groups.describe_consumer(GROUP).members
    found = next(member for member in members if member.member_id == member_id)
    return sorted(partition for _, partition in found.assignment)


class TestUpgrade:
    def test_classic_member_keeps_its_partitions_until_it_gives_them_up(self, shell: Shell) -> None:
        old = classic_member(shell, ALL)
        new = shell.consumer_join("a", "t")
        assert group_type(shell) == "consumer"
        assert (new.epoch, new.assignment) == (2, frozenset())
        assert owned_by(shell, old) == ALL
        with pytest.raises(RebalanceInProgress):
            shell.beat(old, 1)
        assert shell.consumer_beat("a", 2).assignment is None, "not yet"
        again = rejoin(shell, old)  # it has given up everything, as most assignors of clients have it
        assert (again.generation, again.leader, again.members) == (2, "", ())
        kept = fetched(shell, old, 2)
        given = shell.consumer_beat("a", 2).assignment
        assert sorted([*kept, *(partition for _, partition in given or ())]) == ALL
        shell.beat(old, 2)
        assert shell.groups.describe_consumer(GROUP).state == "Stable"

    def test_cooperative_member_gives_up_only_what_others_shall_have(self, shell: Shell) -> None:
        old = classic_member(shell, ALL)
        shell.consumer_join("a", "t")
        first = rejoin(shell, old, owned=ALL)
        assert first.generation == 1, "its epoch stands until it has given up"
        kept = fetched(shell, old, 1)
        assert len(kept) == 2
        assert shell.consumer_beat("a", 2).assignment is None, "not yet"
        with pytest.raises(RebalanceInProgress):
            shell.beat(old, 1)
        assert rejoin(shell, old, owned=kept).generation == 2
        assert fetched(shell, old, 2) == kept
        given = shell.consumer_beat("a", 2).assignment
        assert sorted([*kept, *(partition for _, partition in given or ())]) == ALL

    def test_member_is_called_again_when_what_it_waits_for_is_free(self, shell: Shell) -> None:
        shell.consumer_join("a", "t")
        new_id, token = shell.new_member()
        joined = shell.joined(token)
        assert fetched(shell, new_id, joined.generation) == []
        shell.beat(new_id, joined.generation)
        keeps = shell.consumer_beat("a", 1).assignment
        shell.consumer_beat("a", 1, owned=keeps)
        with pytest.raises(RebalanceInProgress):
            shell.beat(new_id, joined.generation)
        rejoin(shell, new_id)
        assert len(fetched(shell, new_id, joined.generation)) == 2

    def test_members_in_the_middle_of_a_rebalance_are_asked_to_join_again(self, shell: Shell) -> None:
        old = classic_member(shell, ALL)
        _, waiting = shell.new_member()
        shell.consumer_join("a", "t")
        assert isinstance(shell.answers.pop(waiting), RebalanceInProgress)
        assert owned_by(shell, old) == ALL
        assert {m.member_id for m in shell.groups.describe_consumer(GROUP).members} == {"a", "m2", old}

    def test_offsets_stay_and_are_committed_by_generation(self, shell: Shell) -> None:
        old = classic_member(shell, ALL)
        shell.commit(OffsetToCommit("t", 0, 7), member_id=old, generation=1)
        shell.consumer_join("a", "t")
        shell.commit(OffsetToCommit("t", 1, 8), member_id=old, generation=1)
        committed = [shell.committed("t", partition) for partition in (0, 1)]
        assert [value.offset for value in committed if value] == [7, 8]
        with pytest.raises(IllegalGeneration):
            shell.commit(OffsetToCommit("t", 0, 9), member_id=old, generation=2)

    @pytest.mark.parametrize("compacted", [False, True])
    def test_restart_in_the_middle_changes_nothing(self, shell: Shell, compacted: bool) -> None:
        old = classic_member(shell, ALL)
        shell.consumer_join("a", "t")
        shell.restart(compacted=compacted)
        assert owned_by(shell, old) == ALL
        with pytest.raises(RebalanceInProgress):
            shell.beat(old, 1)
        rejoin(shell, old)
        assert len(fetched(shell, old, 2)) == 2

    def test_group_stays_classic_where_the_change_can_not_be_stored(self, shell: Shell) -> None:
        old = classic_member(shell, ALL)
        shell.failing = True
        with pytest.raises(Exception, match="coordinator"):
            shell.consumer_join("a", "t")
        shell.failing = False
        shell.beat(old, 1)
        assert group_type(shell) == "classic"
        shell.advance(9_000)
        shell.beat(old, 1)

    def test_silent_classic_member_is_removed_after_its_own_session(self, shell: Shell) -> None:
        old = classic_member(shell, ALL)
        shell.consumer_join("a", "t")
        shell.advance(9_999)
        assert len(shell.groups.describe_consumer(GROUP).members) == 2
        shell.advance(1)
        shell.consumer_beat("a", 2)
        assert owned_by(shell, "a") == ALL
        with pytest.raises(UnknownMemberId):
            shell.beat(old, 1)

    def test_classic_member_that_does_not_join_again_is_removed(self, shell: Shell) -> None:
        old = classic_member(shell, ALL, rebalance_ms=20_000)
        shell.consumer_join("a", "t")
        for _ in range(4):
            with pytest.raises(RebalanceInProgress):
                shell.beat(old, 1)
            shell.advance(5_000)
        with pytest.raises(UnknownMemberId):
            shell.beat(old, 1)

    @pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
    def test_policy_may_forbid_it(self, policy: MigrationPolicy) -> None:
        shell = with_policy(policy)
        classic_member(shell, ALL)
        with pytest.raises(GroupIdNotFound):
            shell.consumer_join("a", "t")
        assert group_type(shell) == "classic"

    def test_group_of_other_than_consumers_stays_classic(self, shell: Shell) -> None:
        shell.stable_group(1, protocol_type="connect")
        with pytest.raises(GroupIdNotFound):
            shell.consumer_join("a", "t")

    def test_assignment_that_can_not_be_read_keeps_the_group_classic(self, shell: Shell) -> None:
        shell.stable_group(1)  # its assignment is no consumer's
        with pytest.raises(GroupIdNotFound):
            shell.consumer_join("a", "t")

    def test_partition_that_classic_members_share_has_one_owner(self, shell: Shell) -> None:
        (leader, other), generation = shell.stable_group(2)
        everything = assignment.encode({"t": ALL}, 1)
        tokens = [shell.join(leader), shell.join(other)]
        generation = {shell.joined(token).generation for token in tokens}.pop()
        shell.sync(other, generation)
        shell.sync(leader, generation, {leader: everything, other: everything})
        shell.consumer_join("a", "t")
        assert sorted(owned_by(shell, leader) + owned_by(shell, other)) == ALL

    def test_static_classic_member_returns_as_a_consumer_and_has_what_it_had(self, shell: Shell) -> None:
        classic_member(shell, ALL, instance_id="i1")
        answer = shell.consumer_join("a", "t", instance_id="i1")
        assert sorted(partition for _, partition in answer.assignment or ()) == ALL

    def test_classic_member_of_other_assignors_is_refused(self, shell: Shell) -> None:
        classic_member(shell, ALL)
        shell.consumer_join("a", "t")
        token = shell.join(protocols=(("roundrobin", subscription("t")),))
        assert isinstance(shell.answers[token], InconsistentGroupProtocol)
        token = shell.join(protocol_type="connect")
        assert isinstance(shell.answers[token], InconsistentGroupProtocol)

    def test_instance_id_that_another_member_has_is_fenced(self, shell: Shell) -> None:
        classic_member(shell, ALL, instance_id="i1")
        shell.consumer_join("a", "t")
        new = shell.joined(shell.join(instance_id="i1"))
        assert new.member_id != "m1"
        assert isinstance(shell.answers[shell.sync("m1", 1, instance_id="i1")], FencedInstanceId)
        assert isinstance(shell.answers[shell.join("m1", instance_id="i1")], FencedInstanceId)


class TestDowngrade:
    def mixed(self, shell: Shell) -> str:
        """A classic member and a consumer, with two partitions each; the id of the classic one."""
        old = classic_member(shell, ALL)
        shell.consumer_join("a", "t")
        rejoin(shell, old)
        fetched(shell, old, 2)
        shell.consumer_beat("a", 2)
        return old

    @pytest.mark.parametrize("leaves", [True, False])
    def test_last_consumer_goes_and_the_group_is_classic(self, shell: Shell, leaves: bool) -> None:
        old = self.mixed(shell)
        shell.commit(OffsetToCommit("t", 0, 7), member_id=old, generation=2)
        if leaves:
            shell.consumer_beat("a", -1)
        else:
            for _ in range(9):
                shell.advance(5_000)
                if group_type(shell) == "consumer":
                    shell.beat(old, 2)
        assert group_type(shell) == "classic"
        with pytest.raises(RebalanceInProgress):
            shell.beat(old, 2)
        again = rejoin(shell, old)
        assert (again.generation, again.leader) == (3, old)
        committed = shell.committed("t", 0)
        assert committed is not None
        assert committed.offset == 7

    @pytest.mark.parametrize("compacted", [False, True])
    def test_rebalance_is_due_after_a_restart_too(self, shell: Shell, compacted: bool) -> None:
        old = self.mixed(shell)
        shell.consumer_beat("a", -1)
        shell.restart(compacted=compacted)
        with pytest.raises(RebalanceInProgress):
            shell.beat(old, 2)
        assert rejoin(shell, old).generation == 3

    def test_group_may_go_up_again_at_once(self, shell: Shell) -> None:
        old = self.mixed(shell)
        kept = owned_by(shell, old)
        shell.consumer_beat("a", -1)
        shell.consumer_join("b", "t")
        assert owned_by(shell, old) == kept, "it has given up nothing yet"

    def test_static_consumer_returns_as_a_classic_member(self, shell: Shell) -> None:
        old = self.mixed(shell)
        shell.consumer_beat("a", -1)
        rejoin(shell, old)
        shell.sync(old, 3, {old: assignment.encode({"t": ALL}, 1)})
        shell.consumer_join("s", "t", instance_id="i1")
        shell.consumer_beat("s", -2, instance_id="i1")
        token = shell.join(instance_id="i1")
        assert isinstance(shell.answers[token], RebalanceInProgress)
        assert group_type(shell) == "classic"
        back, again = shell.join(instance_id="i1"), shell.join(old)
        assert shell.joined(again).generation == shell.joined(back).generation

    @pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.UPGRADE])
    def test_policy_may_forbid_it(self, policy: MigrationPolicy) -> None:
        shell = with_policy(policy)
        shell.consumer_join("a", "t")
        member_id, token = shell.new_member()
        generation = shell.joined(token).generation
        shell.consumer_beat("a", -1)
        assert group_type(shell) == "consumer"
        with pytest.raises(RebalanceInProgress):
            shell.beat(member_id, generation)
        again = rejoin(shell, member_id)
        assert fetched(shell, member_id, again.generation) == ALL

    def test_classic_members_leave_a_group_of_consumers(self, shell: Shell) -> None:
        old = self.mixed(shell)
        left = shell.leave(MemberIdentity(old), MemberIdentity("a"))
        assert isinstance(left, Left)
        assert left.errors[0] is None
        assert isinstance(left.errors[1], UnknownMemberId), "it speaks the other protocol"
        shell.consumer_beat("a", 2)
        assert owned_by(shell, "a") == ALL
