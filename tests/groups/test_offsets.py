from __future__ import annotations

import pytest

from postroad.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
)
from postroad.groups.answers import Deleted, OffsetsDeleted
from postroad.groups.requests import MemberIdentity, OffsetToCommit
from tests.groups.shell import GROUP, WALL_MS, Shell

DAY_MS = 24 * 3_600_000
RETENTION_MS = 7 * DAY_MS
SWEEP_MS = 600_000


@pytest.fixture
def shell() -> Shell:
    return Shell()


def offset(shell: Shell, topic: str = "t", partition: int = 0) -> int | None:
    found = shell.committed(topic, partition)
    return None if found is None else found.offset


class TestCommit:
    def test_consumer_without_a_group_may_commit(self, shell: Shell) -> None:
        assert shell.commit(OffsetToCommit("t", 0, 5, 3, "note")) == (None,)
        found = shell.committed("t", 0)
        assert found is not None
        assert (found.offset, found.leader_epoch, found.metadata) == (5, 3, "note")
        assert found.commit_ms == WALL_MS + shell.ms

    @pytest.mark.parametrize("compacted", [False, True])
    def test_last_commit_counts_and_survives(self, shell: Shell, compacted: bool) -> None:
        for value in (5, 9, 7):
            shell.commit(OffsetToCommit("t", 0, value))
        shell.restart(compacted=compacted)
        assert offset(shell) == 7

    def test_commit_that_can_not_be_stored_is_not_seen(self, shell: Shell) -> None:
        shell.commit(OffsetToCommit("t", 0, 5))
        shell.failing = True
        with pytest.raises(Exception, match="coordinator"):
            shell.commit(OffsetToCommit("t", 0, 6))
        assert offset(shell) == 5

    def test_member_commits_in_its_generation_only(self, shell: Shell) -> None:
        (member,), generation = shell.stable_group(1)
        item = OffsetToCommit("t", 0, 5)
        assert shell.commit(item, member_id=member, generation=generation) == (None,)
        with pytest.raises(IllegalGeneration):
            shell.commit(item, member_id=member, generation=generation - 1)
        with pytest.raises(UnknownMemberId):
            shell.commit(item, member_id="ghost", generation=generation)
        with pytest.raises(UnknownMemberId):
            shell.commit(item)

    def test_stale_generation_is_refused_after_the_next_began(self, shell: Shell) -> None:
        (member,), generation = shell.stable_group(1)
        shell.joined(shell.join(member))
        with pytest.raises(IllegalGeneration):
            shell.commit(OffsetToCommit("t", 0, 5), member_id=member, generation=generation)
        with pytest.raises(RebalanceInProgress):
            shell.commit(OffsetToCommit("t", 0, 5), member_id=member, generation=generation + 1)

    def test_members_may_commit_while_others_join(self, shell: Shell) -> None:
        (leader, follower), generation = shell.stable_group(2)
        shell.join(leader)
        assert shell.commit(OffsetToCommit("t", 0, 5), member_id=follower, generation=generation) == (None,)

    def test_commit_keeps_a_member_alive(self, shell: Shell) -> None:
        (member,), generation = shell.stable_group(1)
        shell.advance(9_000)
        shell.commit(OffsetToCommit("t", 0, 5), member_id=member, generation=generation)
        shell.advance(9_000)
        shell.beat(member, generation)

    def test_former_self_of_a_static_member_is_fenced(self, shell: Shell) -> None:
        old = shell.joined(shell.join(instance_id="i")).member_id
        shell.sync(old, 1, {old: b""}, instance_id="i")
        shell.joined(shell.join(instance_id="i"))
        with pytest.raises(FencedInstanceId):
            shell.commit(OffsetToCommit("t", 0, 5), member_id=old, generation=1, instance_id="i")

    def test_generation_of_a_group_that_is_not_there_is_refused(self, shell: Shell) -> None:
        with pytest.raises(IllegalGeneration):
            shell.commit(OffsetToCommit("t", 0, 5), member_id="m", generation=3)

    def test_group_without_a_name_may_commit_as_old_clients_do(self, shell: Shell) -> None:
        assert shell.commit(OffsetToCommit("t", 0, 5), group="") == (None,)

    def test_long_metadata_is_refused_for_its_partition_alone(self, shell: Shell) -> None:
        fits, too_long = "é" * 2048, "é" * 2048 + "x"
        errors = shell.commit(OffsetToCommit("t", 0, 5, -1, too_long), OffsetToCommit("t", 1, 6, -1, fits))
        assert isinstance(errors[0], OffsetMetadataTooLarge)
        assert errors[1] is None
        assert (offset(shell), offset(shell, partition=1)) == (None, 6)


class TestFetch:
    def test_unknown_group_has_committed_nothing(self, shell: Shell) -> None:
        assert shell.groups.fetch("nobody", [("t", 3)]) == [("t", 3, None)]
        assert shell.groups.fetch("nobody", None) == []
        assert shell.groups.list() == []

    def test_all_topics_come_in_order(self, shell: Shell) -> None:
        shell.commit(OffsetToCommit("u", 1, 1), OffsetToCommit("t", 2, 2), OffsetToCommit("t", 0, 3))
        found = shell.groups.fetch(GROUP, None)
        assert [(f.topic, f.partition) for f in found] == [("t", 0), ("t", 2), ("u", 1)]

    def test_group_of_offsets_alone_is_listed_as_empty(self, shell: Shell) -> None:
        shell.commit(OffsetToCommit("t", 0, 1))
        assert shell.groups.list() == [(GROUP, "", "Empty", "classic")]
        assert shell.groups.describe_classic(GROUP).state == "Empty"


class TestDelete:
    def delete(self, shell: Shell, *offset_keys: tuple[str, int]) -> list[object]:
        shell.run(lambda: shell.groups.delete_offsets(GROUP, offset_keys, "delete"), "delete")
        answer = shell.answers.pop("delete")
        if isinstance(answer, OffsetsDeleted):
            return [None if error is None else type(error) for error in answer.errors]
        return [type(answer)]

    def delete_group(self, shell: Shell) -> object:
        shell.run(lambda: shell.groups.delete(GROUP, "delete"), "delete")
        return shell.answers.pop("delete")

    def test_offsets_of_topics_that_nobody_reads_are_deleted(self, shell: Shell) -> None:
        (member,), generation = shell.stable_group(1, topics=("t",))
        items = [OffsetToCommit("t", 0, 1), OffsetToCommit("u", 0, 2)]
        shell.commit(*items, member_id=member, generation=generation)
        answers = self.delete(shell, ("t", 0), ("u", 0), ("u", 5))
        assert answers == [GroupSubscribedToTopic, None, None]
        assert (offset(shell), offset(shell, "u")) == (1, None)
        shell.restart()
        assert offset(shell, "u") is None

    def test_offsets_of_a_modern_groups_topics_stay(self, shell: Shell) -> None:
        shell.topic("t", 1)
        shell.commit(OffsetToCommit("t", 0, 1), OffsetToCommit("logs-1", 0, 1), OffsetToCommit("u", 0, 1))
        shell.consumer_join("a", "t", subscribed_regex="logs-.*")
        answers = self.delete(shell, ("t", 0), ("logs-1", 0), ("u", 0))
        assert answers == [GroupSubscribedToTopic, GroupSubscribedToTopic, None]

    def test_group_of_another_protocol_type_must_be_empty(self, shell: Shell) -> None:
        shell.joined(shell.join(v4=False, protocol_type="connect"))
        assert self.delete(shell, ("t", 0)) == [NonEmptyGroup]

    def test_unknown_group_is_not_found(self, shell: Shell) -> None:
        assert self.delete(shell, ("t", 0)) == [GroupIdNotFound]

    def test_group_is_deleted_with_its_offsets(self, shell: Shell) -> None:
        (member,), generation = shell.stable_group(1)
        shell.commit(OffsetToCommit("t", 0, 1), member_id=member, generation=generation)
        assert isinstance(self.delete_group(shell), NonEmptyGroup)
        shell.leave(MemberIdentity(member))
        assert self.delete_group(shell) == Deleted()
        assert shell.groups.list() == []
        shell.restart()
        assert shell.groups.list() == []
        assert isinstance(self.delete_group(shell), GroupIdNotFound)

    def test_offsets_go_with_their_topic(self, shell: Shell) -> None:
        shell.commit(OffsetToCommit("t", 0, 1), OffsetToCommit("t", 1, 1), OffsetToCommit("u", 0, 2))
        assert shell.groups.topics_with_offsets() == {"t", "u"}
        assert shell.groups.groups_with_offsets("t") == [GROUP]
        shell.run(lambda: shell.groups.forget_topic(GROUP, "t"))
        assert shell.groups.topics_with_offsets() == {"u"}
        assert shell.groups.forget_topic("nobody", "t").records == []


class TestExpiry:
    def test_commits_without_a_group_expire_after_the_retention(self, shell: Shell) -> None:
        shell.commit(OffsetToCommit("t", 0, 1))
        shell.advance(RETENTION_MS - SWEEP_MS)
        assert offset(shell) == 1
        shell.advance(2 * SWEEP_MS)
        assert shell.groups.list() == []
        shell.restart()
        assert shell.groups.list() == []

    def test_retention_counts_from_when_the_group_is_empty(self, shell: Shell) -> None:
        (member,), generation = shell.stable_group(1, session_ms=1_800_000)
        shell.commit(OffsetToCommit("t", 0, 1), member_id=member, generation=generation)
        for _ in range(8 * 96):  # eight days alive, without another commit
            shell.advance(900_000)
            shell.beat(member, generation)
        assert offset(shell) == 1
        shell.leave(MemberIdentity(member))
        shell.advance(RETENTION_MS - SWEEP_MS)
        shell.restart()
        assert offset(shell) == 1
        shell.advance(2 * SWEEP_MS)
        assert shell.groups.list() == []

    def test_topic_that_is_no_longer_read_expires_under_live_members(self, shell: Shell) -> None:
        shell.topic("t", 1)
        shell.commit(OffsetToCommit("t", 0, 1), OffsetToCommit("u", 0, 1))
        shell.consumer_join("a", "t")
        for _ in range(8 * 24 * 90):
            shell.advance(40_000)
            shell.consumer_beat("a", 1)
        assert (offset(shell), offset(shell, "u")) == (1, None)

    def test_client_may_ask_for_another_retention(self, shell: Shell) -> None:
        shell.commit(OffsetToCommit("t", 0, 1), retention_ms=3_600_000)
        shell.advance(3_600_000 - SWEEP_MS)
        assert offset(shell) == 1
        shell.advance(2 * SWEEP_MS)
        assert offset(shell) is None

    def test_empty_group_without_offsets_is_forgotten(self, shell: Shell) -> None:
        (member,), _ = shell.stable_group(1)
        shell.leave(MemberIdentity(member))
        shell.advance(SWEEP_MS)
        assert shell.groups.list() == []
        deadline = shell.groups.next_deadline()
        assert deadline is None or deadline > shell.ms
