"""KIP-848: one heartbeat for all."""

from __future__ import annotations

import pytest

from postroad.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from postroad.groups.answers import Left
from postroad.groups.requests import MemberIdentity, OffsetToCommit, Partitions
from postroad.groups.settings import GroupSettings
from tests.groups.shell import GROUP, Shell, partitions


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.fixture
def topic(shell: Shell) -> bytes:
    return shell.topic("t", 4)


def owned(shell: Shell, member_id: str) -> Partitions:
    described = shell.groups.describe_consumer(GROUP)
    return next(m.assignment for m in described.members if m.member_id == member_id)


def state(shell: Shell) -> str:
    return shell.groups.describe_consumer(GROUP).state


def two_members(shell: Shell, topic: bytes) -> None:
    """a and b with two partitions each, at epoch 2."""
    shell.consumer_join("a", "t")
    shell.consumer_join("b", "t")
    keeps = shell.consumer_beat("a", 1).assignment
    assert keeps is not None
    assert shell.consumer_beat("a", 1, owned=keeps).epoch == 2
    given = shell.consumer_beat("b", 2).assignment
    assert given is not None
    assert keeps | given == partitions(topic, 0, 1, 2, 3)


class TestJoining:
    def test_lone_member_gets_all_partitions_at_once(self, shell: Shell, topic: bytes) -> None:
        answer = shell.consumer_join("a", "t")
        assert (answer.member_id, answer.epoch) == ("a", 1)
        assert answer.heartbeat_interval_ms == 5_000
        assert answer.assignment == partitions(topic, 0, 1, 2, 3)
        assert state(shell) == "Stable"

    def test_member_without_an_id_is_given_one(self, shell: Shell, topic: bytes) -> None:
        assert shell.consumer_join("", "t").member_id == "m1"

    def test_nothing_is_repeated_while_nothing_changes(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        before = len(shell.log)
        answer = shell.consumer_beat("a", 1)
        assert (answer.epoch, answer.assignment) == (1, None)
        assert len(shell.log) == before

    def test_member_that_tells_all_is_told_all(self, shell: Shell, topic: bytes) -> None:
        given = shell.consumer_join("a", "t").assignment
        answer = shell.consumer_beat(
            "a", 1, rebalance_timeout_ms=30_000, subscribed_names=("t",), owned=given
        )
        assert answer.assignment == given

    def test_topic_that_does_not_exist_yet_is_waited_for(self, shell: Shell) -> None:
        assert shell.consumer_join("a", "later").assignment == frozenset()
        later = shell.topic("later", 2)
        answer = shell.consumer_beat("a", 1)
        assert (answer.epoch, answer.assignment) == (2, partitions(later, 0, 1))

    def test_partition_is_given_on_only_after_it_was_given_up(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        answer = shell.consumer_join("b", "t")
        assert (answer.epoch, answer.assignment) == (2, frozenset())
        assert state(shell) == "Reconciling"
        keeps = shell.consumer_beat("a", 1)
        assert keeps.epoch == 1, "its epoch stands until it has given up"
        assert keeps.assignment is not None
        assert len(keeps.assignment) == 2
        assert shell.consumer_beat("b", 2).assignment is None
        everything = partitions(topic, 0, 1, 2, 3)
        assert shell.consumer_beat("a", 1, owned=everything).epoch == 1, "not yet"
        assert shell.consumer_beat("a", 1, owned=keeps.assignment).epoch == 2
        assert shell.consumer_beat("b", 2).assignment == everything - keeps.assignment
        assert state(shell) == "Stable"

    def test_member_that_gives_nothing_up_is_removed(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        shell.consumer_join("b", "t")
        shell.consumer_beat("a", 1)
        for _ in range(6):
            shell.advance(5_000)
            if shell.ms < 31_000:
                shell.consumer_beat("a", 1)
            shell.consumer_beat("b", shell.groups.describe_consumer(GROUP).target_epoch)
        with pytest.raises(UnknownMemberId):
            shell.consumer_beat("a", 1)
        assert owned(shell, "b") == partitions(topic, 0, 1, 2, 3)

    @pytest.mark.parametrize("timeout_ms", [0, -5])
    def test_member_may_join_with_no_time_to_give_up_partitions(
        self, shell: Shell, topic: bytes, timeout_ms: int
    ) -> None:
        """As in Kafka: only -1 means that the timeout is missing."""
        answer = shell.consumer_join("a", "t", rebalance_timeout_ms=timeout_ms)
        assert answer.assignment == partitions(topic, 0, 1, 2, 3)

    def test_member_that_leaves_is_asked_for_no_heartbeat(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        assert shell.consumer_beat("a", -1).heartbeat_interval_ms == 0

    def test_group_takes_no_more_members_than_its_maximum(self) -> None:
        shell = Shell(GroupSettings(consumer_group_size_max=1))
        shell.consumer_join("a", "t")
        shell.consumer_join("a", "t")
        with pytest.raises(GroupMaxSizeReached):
            shell.consumer_join("b", "t")

    def test_member_that_joins_again_has_what_it_had(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        answer = shell.consumer_join("a", "t")
        assert (answer.epoch, answer.assignment) == (1, partitions(topic, 0, 1, 2, 3))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"group_id": ""},
            {"epoch": -3},
            {"epoch": -2},
            {"member_id": "", "epoch": 1},
            {"instance_id": ""},
            {"rack_id": ""},
            {"rebalance_timeout_ms": -1},
            {"owned": None},
            {"owned": partitions(b"x" * 16, 0)},
            {"subscribed_names": None},
        ],
    )
    def test_contradictory_request_is_refused(self, shell: Shell, wrong: dict[str, object]) -> None:
        right: dict[str, object] = {
            "member_id": "a",
            "epoch": 0,
            "rebalance_timeout_ms": 30_000,
            "subscribed_names": ("t",),
            "owned": frozenset(),
        }
        with pytest.raises(InvalidRequest):
            shell.consumer_beat(**{**right, **wrong})  # type: ignore[arg-type]

    def test_assignor_that_is_not_known_is_refused(self, shell: Shell) -> None:
        with pytest.raises(UnsupportedAssignor):
            shell.consumer_join("a", "t", assignor="sticky")

    def test_most_members_choose_the_assignor(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t", assignor="range")
        assert shell.groups.describe_consumer(GROUP).assignor == "range"
        shell.consumer_join("b", "t", assignor="uniform")
        shell.consumer_join("c", "t", assignor="uniform")
        assert shell.groups.describe_consumer(GROUP).assignor == "uniform"


class TestEpochs:
    def test_unknown_group_or_member_is_refused(self, shell: Shell, topic: bytes) -> None:
        with pytest.raises(GroupIdNotFound):
            shell.consumer_beat("a", 1)
        shell.consumer_join("a", "t")
        with pytest.raises(UnknownMemberId):
            shell.consumer_beat("b", 1)

    def test_wrong_epoch_is_fenced(self, shell: Shell, topic: bytes) -> None:
        two_members(shell, topic)
        for epoch in (1, 3):
            with pytest.raises(FencedMemberEpoch):
                shell.consumer_beat("a", epoch)

    def test_member_whose_answer_was_lost_may_repeat_its_heartbeat(self, shell: Shell, topic: bytes) -> None:
        two_members(shell, topic)
        kept = owned(shell, "a")
        answer = shell.consumer_beat("a", 1, owned=kept)
        assert (answer.epoch, answer.assignment) == (2, kept)
        with pytest.raises(FencedMemberEpoch):
            shell.consumer_beat("a", 1, owned=partitions(topic, 0, 1, 2, 3))

    def test_silent_member_loses_its_partitions(self, shell: Shell, topic: bytes) -> None:
        two_members(shell, topic)
        shell.advance(30_000)
        shell.consumer_beat("a", 2)
        shell.advance(15_000)
        answer = shell.consumer_beat("a", 2)
        assert (answer.epoch, answer.assignment) == (3, partitions(topic, 0, 1, 2, 3))

    def test_member_that_leaves_gives_all_up(self, shell: Shell, topic: bytes) -> None:
        two_members(shell, topic)
        assert shell.consumer_beat("b", -1).epoch == -1
        assert state(shell) == "Assigning"
        assert shell.consumer_beat("a", 2).assignment == partitions(topic, 0, 1, 2, 3)
        shell.consumer_beat("a", -1)
        assert state(shell) == "Empty"
        with pytest.raises(UnknownMemberId):
            shell.consumer_beat("a", -1)

    def test_changed_subscription_moves_partitions(self, shell: Shell, topic: bytes) -> None:
        other = shell.topic("u", 2)
        shell.consumer_join("a", "t")
        told = shell.consumer_beat("a", 1, subscribed_names=("u",))
        assert (told.epoch, told.assignment) == (1, frozenset())
        done = shell.consumer_beat("a", 1, owned=frozenset())
        assert (done.epoch, done.assignment) == (2, partitions(other, 0, 1))

    def test_more_partitions_are_given_out(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        shell.topic("t", 6)
        assert shell.consumer_beat("a", 1).assignment == partitions(topic, *range(6))

    def test_deleted_topic_is_taken_away(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        shell.drop_topic("t")
        assert shell.consumer_beat("a", 1, owned=frozenset()).assignment == frozenset()

    def test_other_topics_leave_the_group_alone(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        shell.topic("unrelated", 3)
        assert shell.consumer_beat("a", 1).epoch == 1

    def test_heartbeat_that_can_not_be_stored_changes_nothing(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        before = shell.groups.describe_consumer(GROUP)
        shell.failing = True
        shell.topic("t", 6)
        with pytest.raises(Exception, match="coordinator"):
            shell.consumer_beat("a", 1)
        assert shell.groups.describe_consumer(GROUP) == before
        shell.failing = False
        assert shell.consumer_beat("a", 1).epoch == 2


class TestRegex:
    def test_pattern_subscribes_to_topics_as_they_come(self, shell: Shell) -> None:
        first = shell.topic("logs-1", 1)
        shell.topic("orders", 1)
        shell.topic("__consumer_offsets", 1)
        answer = shell.consumer_join("a", subscribed_names=None, subscribed_regex="^logs-.*|__.*")
        assert answer.assignment == partitions(first, 0)
        second = shell.topic("logs-2", 1)
        assert shell.consumer_beat("a", 1).assignment == partitions(first, 0) | partitions(second, 0)

    def test_bad_pattern_is_refused(self, shell: Shell) -> None:
        with pytest.raises(InvalidRegularExpression):
            shell.consumer_join("a", subscribed_regex="(")

    def test_pattern_and_names_add_up_and_an_empty_pattern_ends_it(self, shell: Shell) -> None:
        a, b = shell.topic("a", 1), shell.topic("b", 1)
        answer = shell.consumer_join("m", "a", subscribed_regex="b")
        assert answer.assignment == partitions(a, 0) | partitions(b, 0)
        assert shell.consumer_beat("m", 1, subscribed_regex="").assignment == partitions(a, 0)


class TestStaticMembers:
    def test_returns_to_its_partitions_without_a_new_epoch(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t", instance_id="i")
        assert shell.consumer_beat("a", -2, instance_id="i").epoch == -2
        answer = shell.consumer_join("b", "t", instance_id="i")
        assert (answer.member_id, answer.epoch) == ("b", 1)
        assert answer.assignment == partitions(topic, 0, 1, 2, 3)
        with pytest.raises(FencedInstanceId):
            shell.consumer_beat("a", 1, instance_id="i")

    def test_instance_that_is_still_in_use_is_not_released(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t", instance_id="i")
        with pytest.raises(UnreleasedInstanceId):
            shell.consumer_join("b", "t", instance_id="i")
        with pytest.raises(UnknownMemberId):
            shell.consumer_beat("a", 1, instance_id="other")
        with pytest.raises(FencedInstanceId):
            shell.consumer_beat("b", -2, instance_id="i")

    def test_one_that_does_not_return_is_removed(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t", instance_id="i")
        shell.consumer_beat("a", -2, instance_id="i")
        shell.advance(45_000)
        assert state(shell) == "Empty"

    def test_one_that_returns_under_its_own_id_goes_on(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t", instance_id="i")
        shell.consumer_beat("a", -2, instance_id="i")
        answer = shell.consumer_join("a", "t", instance_id="i")
        assert (answer.epoch, len(answer.assignment or ())) == (1, 4)


class TestProtocolsBesideEachOther:
    def test_consumer_is_no_member_for_the_classic_protocol(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        assert isinstance(shell.answers[shell.sync("a", 1)], UnknownMemberId)
        with pytest.raises(UnknownMemberId):
            shell.beat("a", 1)
        left = shell.leave(MemberIdentity("a"))
        assert isinstance(left, Left)
        assert isinstance(left.errors[0], UnknownMemberId)
        assert shell.groups.describe_classic(GROUP).state == "Dead"

    @pytest.mark.parametrize("compacted", [False, True])
    def test_empty_group_changes_its_protocol_and_keeps_its_offsets(
        self, shell: Shell, topic: bytes, compacted: bool
    ) -> None:
        (member,), generation = shell.stable_group(1)
        shell.commit(OffsetToCommit("t", 0, 7), member_id=member, generation=generation)
        shell.leave(MemberIdentity(member))
        shell.consumer_join("a", "t")
        assert [g.group_type for g in shell.groups.list()] == ["consumer"]
        shell.consumer_beat("a", -1)
        shell.restart(compacted=compacted)
        shell.stable_group(1)
        shell.restart(compacted=compacted)
        assert [(g.group_type, g.state) for g in shell.groups.list()] == [("classic", "Stable")]
        found = shell.committed("t", 0)
        assert found is not None
        assert found.offset == 7

    @pytest.mark.parametrize("restarts", [False, True])
    def test_an_empty_group_that_changes_its_protocol_makes_no_stale_commit_valid(
        self, shell: Shell, topic: bytes, restarts: bool
    ) -> None:
        former = shell.consumer_join("a", "t")
        shell.consumer_beat("a", -1)
        if restarts:
            shell.restart()
        (member,), generation = shell.stable_group(1)
        assert generation > former.epoch
        shell.leave(MemberIdentity(member))
        if restarts:
            shell.restart()
        assert shell.consumer_join("a", "t").epoch > generation
        with pytest.raises(StaleMemberEpoch):
            shell.commit(OffsetToCommit("t", 0, 5), member_id="a", generation=former.epoch)

    def test_classic_group_that_comes_to_nothing_leaves_the_empty_one(
        self, shell: Shell, topic: bytes
    ) -> None:
        shell.consumer_join("a", "t")
        shell.consumer_beat("a", -1)
        shell.join()
        assert [g.group_type for g in shell.groups.list()] == ["classic"]
        shell.advance(10_000)
        assert [g.group_type for g in shell.groups.list()] == ["consumer"]


class TestOffsetsOfMembers:
    def test_commit_needs_the_current_epoch(self, shell: Shell, topic: bytes) -> None:
        two_members(shell, topic)
        offset = OffsetToCommit("t", 0, 5)
        assert shell.commit(offset, member_id="a", generation=2) == (None,)
        with pytest.raises(StaleMemberEpoch):
            shell.commit(offset, member_id="a", generation=1)
        with pytest.raises(UnknownMemberId):
            shell.commit(offset, member_id="c", generation=2)
        with pytest.raises(UnknownMemberId):
            shell.commit(offset)

    def test_fetch_by_a_member_needs_the_current_epoch(self, shell: Shell, topic: bytes) -> None:
        shell.consumer_join("a", "t")
        assert shell.groups.fetch(GROUP, [("t", 0)], "a", 1)[0].value is None
        assert shell.groups.fetch(GROUP, None) == []
        with pytest.raises(StaleMemberEpoch):
            shell.groups.fetch(GROUP, None, "a", 3)
        with pytest.raises(UnknownMemberId):
            shell.groups.fetch(GROUP, None, "b", 1)


@pytest.mark.parametrize("compacted", [False, True])
def test_restart_in_the_middle_of_a_rebalance_goes_on(shell: Shell, topic: bytes, compacted: bool) -> None:
    shell.consumer_join("a", "t")
    shell.consumer_join("b", "t")
    keeps = shell.consumer_beat("a", 1).assignment
    before = shell.groups.describe_consumer(GROUP)
    shell.restart(compacted=compacted)
    after = shell.groups.describe_consumer(GROUP)
    assert after == before
    assert shell.consumer_beat("a", 1, owned=keeps).epoch == 2
    assert len(shell.consumer_beat("b", 2).assignment or ()) == 2
    shell.advance(45_000)
    assert state(shell) == "Empty"


def test_members_that_are_dropped_while_recovering_stay_away_after_compaction(
    shell: Shell, topic: bytes
) -> None:
    two_members(shell, topic)
    shell.log += shell.groups.without_members(GROUP)
    last = {record.key: record for record in shell.log}
    kept = [record for record in last.values() if record.value is not None]  # tombstones are gone one day
    again = Shell()
    for record in kept:
        again.groups.apply(record)
    assert not again.groups.exists(GROUP)
