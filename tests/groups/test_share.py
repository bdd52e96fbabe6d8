"""Members of share groups: joining, living on, leaving, falling silent, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest

from postroad.errors import (
    ApiError,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    UnknownMemberId,
)
from postroad.groups.answers import ListedGroup, ShareHeartbeatAnswer
from postroad.groups.requests import Client, ShareHeartbeat, TopicInfo, Topics
from postroad.groups.settings import ShareGroupSettings
from postroad.groups.share import ShareGroups
from postroad.groups.share_group import SMALL_GROUP
from postroad.now import Now

T_ID, U_ID = b"t" * 16, b"u" * 16
SETTINGS = ShareGroupSettings(heartbeat_ms=5_000, session_ms=45_000, members_max=10_000)


class World:
    """The groups, the time and the topics."""

    def __init__(self, **partitions: int) -> None:
        self.groups = ShareGroups()
        self.settings = SETTINGS
        self.ms = 1_000
        self.topics = Topics(1, {})
        for name, count in partitions.items():
            self.topic(name, count)

    def topic(self, name: str, partitions: int, topic_id: bytes | None = None) -> None:
        info = TopicInfo(topic_id or name.encode() * 16, partitions)
        self.topics = Topics(self.topics.version + 1, {**self.topics.by_name, name: info})

    def beat(
        self, member_id: str, epoch: int, *names: str, group: str = "g", **more: Any
    ) -> ShareHeartbeatAnswer:
        request = ShareHeartbeat(group, member_id, epoch, subscribed_names=names or None, **more)
        answer = self.groups.heartbeat(request, self.topics, self.settings, Now(self.ms, 0))
        self.groups.check()
        return answer

    def join(self, member_id: str, *names: str, **more: Any) -> ShareHeartbeatAnswer:
        return self.beat(member_id, 0, *(names or ("t",)), **more)

    def expire(self, ms: int) -> list[tuple[str, str]]:
        self.ms += ms
        gone = self.groups.expire(Now(self.ms, 0))
        self.groups.check()
        return gone


# --- joining


def test_first_member_is_told_everything() -> None:
    answer = World(t=3, u=1).join("a", "u", "t", "t")
    assert answer == ShareHeartbeatAnswer("a", 1, 5_000, {T_ID: [0, 1, 2], U_ID: [0]}, ("t", "u"))


def test_second_member_shares_what_the_first_has() -> None:
    world = World(t=3)
    world.join("a")
    assert world.join("b").assignment == {T_ID: [0, 1, 2]}


def test_two_groups_know_nothing_of_each_other() -> None:
    world = World(t=1)
    world.join("a", group="g")
    world.join("a", group="h")
    assert world.beat("a", -1, group="g").epoch == -1
    assert world.beat("a", 1, group="h").epoch == 1
    assert (world.groups.members("g"), world.groups.members("h")) == ([], ["a"])


@pytest.mark.parametrize(
    "request_",
    [
        ShareHeartbeat("", "a", 0, subscribed_names=("t",)),
        ShareHeartbeat("g", "", 0, subscribed_names=("t",)),
        ShareHeartbeat("g", "a", 0, rack_id="", subscribed_names=("t",)),
        ShareHeartbeat("g", "a", 0),
        ShareHeartbeat("g", "a", 0, subscribed_names=()),
        ShareHeartbeat("g", "a", -2, subscribed_names=("t",)),
    ],
)
def test_heartbeat_that_contradicts_itself_is_refused(request_: ShareHeartbeat) -> None:
    groups = ShareGroups()
    with pytest.raises(InvalidRequest):
        groups.heartbeat(request_, Topics(1, {}), SETTINGS, Now(0, 0))
    assert not groups.has_members("g")


def test_group_that_is_full_takes_nobody_but_its_members() -> None:
    world = World(t=1)
    world.settings = ShareGroupSettings(members_max=2)
    world.join("a")
    world.join("b")
    with pytest.raises(GroupMaxSizeReached):
        world.join("c")
    assert world.join("b").assignment == {T_ID: [0]}


def test_member_that_joins_again_is_told_everything_again() -> None:
    world = World(t=2)
    assert world.join("a") == world.join("a")


# --- living on


def test_assignment_that_the_member_knows_is_not_repeated() -> None:
    world = World(t=2)
    world.join("a")
    assert world.beat("a", 1) == ShareHeartbeatAnswer("a", 1, 5_000, None, ("t",))


def test_member_hears_of_a_new_assignment_at_its_next_heartbeat() -> None:
    world = World(t=4)
    epoch = world.join("a").epoch
    for member_id in "bcd":
        world.join(member_id)
    answer = world.beat("a", epoch)
    assert answer.epoch > epoch
    assert answer.assignment is not None
    assert len(answer.assignment[T_ID]) == 2


@pytest.mark.parametrize("epoch", [2, 99])
def test_epoch_that_was_never_told_is_fenced(epoch: int) -> None:
    world = World(t=1)
    world.join("a")
    with pytest.raises(FencedMemberEpoch):
        world.beat("a", epoch)


def test_lost_answers_are_given_again_until_the_member_shows_that_it_heard() -> None:
    world = World(t=4)
    world.join("b")
    known = world.join("a").epoch
    world.beat("a", known)
    told = []
    for member_id in "cde":
        world.join(member_id)
        told.append(world.beat("a", known))  # each of these answers is lost but the last
    assert all(answer.assignment is not None for answer in told)
    assert world.beat("a", told[-1].epoch).assignment is None
    with pytest.raises(FencedMemberEpoch):
        world.beat("a", known)


def test_unknown_member_must_join_first() -> None:
    world = World(t=1)
    with pytest.raises(UnknownMemberId):
        world.beat("a", 1)
    world.join("b")
    with pytest.raises(UnknownMemberId):
        world.beat("a", 1)


def test_subscription_changes_with_a_heartbeat_that_names_one() -> None:
    world = World(t=1, u=2)
    world.join("a", "t")
    assert world.beat("a", 1, "u") == ShareHeartbeatAnswer("a", 2, 5_000, {U_ID: [0, 1]}, ("u",))
    assert world.groups.topics_of("g") == ["u"]


def test_member_may_end_its_subscription_and_stay() -> None:
    world = World(t=1)
    world.join("a")
    request = ShareHeartbeat("g", "a", 1, subscribed_names=())
    answer = world.groups.heartbeat(request, world.topics, SETTINGS, Now(world.ms, 0))
    assert (answer.assignment, answer.topics) == ({}, ())
    assert world.groups.has_members("g")


# --- topics


def test_topic_that_appears_is_assigned() -> None:
    world = World()
    assert world.join("a").assignment == {}
    world.topic("t", 2)
    assert world.beat("a", 1) == ShareHeartbeatAnswer("a", 2, 5_000, {T_ID: [0, 1]}, ("t",))


def test_topic_that_grows_is_assigned_anew() -> None:
    world = World(t=1)
    world.join("a")
    world.topic("t", 3)
    assert world.beat("a", 1).assignment == {T_ID: [0, 1, 2]}


def test_topic_that_was_made_anew_is_another_topic() -> None:
    world = World(t=1)
    world.join("a")
    world.topic("t", 1, topic_id=b"n" * 16)
    assert world.beat("a", 1).assignment == {b"n" * 16: [0]}


def test_topic_that_nobody_subscribes_to_changes_nothing() -> None:
    world = World(t=1)
    world.join("a")
    world.topic("u", 3)
    assert world.beat("a", 1) == ShareHeartbeatAnswer("a", 1, 5_000, None, ("t",))


# --- leaving


def test_what_a_member_leaves_goes_to_the_others() -> None:
    world = World(t=4)
    for member_id in "abcd":
        epoch = world.join(member_id).epoch
    for member_id in "abc":
        assert world.beat(member_id, -1).epoch == -1
    assert world.beat("d", epoch).assignment == {T_ID: [0, 1, 2, 3]}


def test_who_is_no_member_can_not_leave() -> None:
    world = World(t=1)
    with pytest.raises(UnknownMemberId):
        world.beat("a", -1)
    world.join("b")
    with pytest.raises(UnknownMemberId):
        world.beat("a", -1)


def test_group_is_forgotten_with_its_last_member() -> None:
    world = World(t=1)
    world.join("a")
    world.beat("a", -1)
    assert not world.groups.has_members("g")
    assert world.groups.next_deadline() is None
    assert world.groups.list() == []


def test_silent_member_is_removed_when_its_session_is_over() -> None:
    world = World(t=1)
    world.join("a")
    world.ms += 40_000
    world.join("b")
    assert world.groups.next_deadline() == 46_000
    assert world.expire(4_999) == []
    assert world.expire(1) == [("g", "a")]
    assert world.groups.members("g") == ["b"]
    with pytest.raises(UnknownMemberId):
        world.beat("a", 1)


def test_heartbeat_prolongs_the_session() -> None:
    world = World(t=1)
    world.join("a")
    for _ in range(5):
        assert world.expire(44_999) == []
        world.beat("a", 1)


def test_session_has_the_length_that_the_group_is_set_to() -> None:
    world = World(t=1)
    world.settings = ShareGroupSettings(heartbeat_ms=100, session_ms=300)
    assert world.join("a").heartbeat_ms == 100
    assert world.expire(300) == [("g", "a")]


# --- large groups


def test_flood_of_newcomers_is_given_one_assignment() -> None:
    world = World(t=4)
    for number in range(SMALL_GROUP + 1):
        world.join(f"m{number}")
    first, second = world.join("x"), world.join("y")
    assert first.assignment == second.assignment == {}
    assert first.epoch == second.epoch
    assert first.heartbeat_ms < 100  # it is asked back soon
    world.ms += first.heartbeat_ms
    for answer in (world.beat("x", first.epoch), world.beat("y", second.epoch)):
        assert answer.assignment
        assert answer.heartbeat_ms == 5_000


def test_who_subscribes_otherwise_does_not_wait() -> None:
    world = World(t=4, u=1)
    for number in range(SMALL_GROUP + 1):
        epoch = world.join(f"m{number}").epoch
    assert world.beat(f"m{number}", epoch, "u").assignment == {U_ID: [0]}


# --- what an operator sees


def test_groups_are_listed_by_state_and_type() -> None:
    world = World(t=1)
    world.join("a")
    stable, empty = ListedGroup("g", "share", "Stable", "share"), ListedGroup("h", "share", "Empty", "share")
    groups = world.groups
    assert groups.list(existing=["g", "h"]) == [stable, empty]
    assert groups.list(states=["STABLE"], existing=["g", "h"]) == [stable]
    assert groups.list(states=["empty"], types=["Share"], existing=["h"]) == [empty]
    assert groups.list(types=["consumer", "classic"], existing=["h"]) == []


def test_group_is_described_with_what_its_members_were_told() -> None:
    world = World(t=2)
    world.join("a", rack_id="r", client=Client("me", "/here"))
    found = world.groups.describe("g", exists=True)
    assert (found.state, found.epoch, found.target_epoch) == ("Stable", 1, 1)
    [member] = found.members
    assert (member.member_id, member.rack_id, member.epoch) == ("a", "r", 1)
    assert (member.client_id, member.client_host, member.subscribed_names) == ("me", "/here", ("t",))
    assert sorted(member.assignment) == [(T_ID, 0), (T_ID, 1)]


def test_group_without_members_is_described_if_it_exists() -> None:
    groups = ShareGroups()
    assert groups.describe("g", exists=True).state == "Empty"
    with pytest.raises(GroupIdNotFound):
        groups.describe("g")


def test_refusal_changes_nothing() -> None:
    world = World(t=1)
    world.join("a")
    before = world.groups.describe("g"), world.groups.next_deadline()
    world.ms += 1_000
    for member_id, epoch in [("a", 7), ("b", 1), ("b", -1)]:
        with pytest.raises(ApiError):
            world.beat(member_id, epoch, "u")
    assert (world.groups.describe("g"), world.groups.next_deadline()) == before


def test_member_whose_connection_is_gone_is_waited_for_two_heartbeats_only() -> None:
    world = World(t=1)
    world.join("dead")
    alive = world.join("alive")
    for member_id in ("dead", "alive"):
        world.groups.suspect("g", member_id, SETTINGS, Now(world.ms, 0))
    world.ms += 5_000
    world.beat("alive", alive.epoch)
    assert world.expire(4_999) == []
    assert world.expire(1) == [("g", "dead")]
    assert world.expire(30_000) == [], "the other one was heard of"
    world.groups.suspect("g", "nobody", SETTINGS, Now(world.ms, 0))
