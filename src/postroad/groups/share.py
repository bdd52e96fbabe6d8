"""`ShareGroups`: the members of all share groups (KIP-932), and all that the broker calls about them.

Membership is soft: there are no records. What a subscription has delivered is kept elsewhere and outlives
its members; after a restart nobody is a member, each hears UnknownMemberId at its next heartbeat and joins
again by itself. So a group is remembered here while it has members, and whether one without members exists
is for the caller to say.

Invariants, besides those in `share_group.py`:
- M6 A group that is remembered has members.
- M7 Every member has a deadline by which it must have been heard of.

An ApiError that is raised is the answer to the request; nothing has changed. The timer: at `next_deadline`
call `expire`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from postroad.errors import GroupIdNotFound, GroupMaxSizeReached, InvalidRequest, UnknownMemberId
from postroad.groups.answers import ListedGroup, ShareDescription, ShareHeartbeatAnswer
from postroad.groups.deadlines import Deadlines, Key
from postroad.groups.requests import JOIN_EPOCH, LEAVE_EPOCH, Partitions, ShareHeartbeat, Topics
from postroad.groups.settings import ShareGroupSettings
from postroad.groups.share_group import EMPTY, STABLE, ShareGroup
from postroad.now import Now

SHARE_TYPE: Final = "share"  # a protocol type and a group type

_SESSION: Final = "share-session"


class ShareGroups:
    def __init__(self) -> None:
        self._groups: dict[str, ShareGroup] = {}
        self._deadlines = Deadlines()

    # --- a member's life ---

    def heartbeat(
        self, request: ShareHeartbeat, topics: Topics, settings: ShareGroupSettings, now: Now
    ) -> ShareHeartbeatAnswer:
        """Join, live on or leave. The answer is to be held back until the topics that it names can be
        fetched from."""
        _check_request(request)
        if request.epoch == LEAVE_EPOCH:
            return self._leave(request, settings)
        group = self._find_or_make(request, settings)
        member = group.subscribe(request)
        group.assign(topics, now.ms)
        told = group.tell(member, request)
        self._deadlines.set(_session(request.group_id, request.member_id), now.ms + settings.session_ms)
        return ShareHeartbeatAnswer(
            member.member_id,
            member.epoch,
            group.waits_ms(member, now.ms) or settings.heartbeat_ms,
            None if told is None else _by_topic(told),
            member.subscribed_names,
        )

    def next_deadline(self) -> int | None:
        """The next deadline on the monotonic clock, or None. A heartbeat may bring it forward."""
        return self._deadlines.next()

    def suspect(self, group_id: str, member_id: str, settings: ShareGroupSettings, now: Now) -> None:
        """The member's connection is gone. If it lives it heartbeats soon; if not, its partitions
        should not wait for a whole session's time."""
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members:
            key = _session(group_id, member_id)
            at = now.ms + min(2 * settings.heartbeat_ms, settings.session_ms)
            self._deadlines.set(key, min(at, self._deadlines.get(key) or at))

    def expire(self, now: Now) -> list[tuple[str, str]]:
        """Remove the members that went silent: group id and member id of each."""
        gone = []
        for group_id in self._deadlines.due(now.ms):
            for key in self._deadlines.take(group_id, now.ms):
                self._remove(self._groups[group_id], key.member_id)
                gone.append((group_id, key.member_id))
        return gone

    # --- who and what ---

    def forget(self, group_id: str) -> None:
        """Another node coordinates the group: its members are not known here any more."""
        group = self._groups.pop(group_id)
        for member_id in group.members:
            self._deadlines.cancel(_session(group_id, member_id))

    def ids(self) -> list[str]:
        """The ids of all groups that have members."""
        return [*self._groups]

    def has_members(self, group_id: str) -> bool:
        return group_id in self._groups

    def count(self, group_id: str) -> int:
        """How many members the group has."""
        group = self._groups.get(group_id)
        return 0 if group is None else len(group.members)

    def members(self, group_id: str) -> list[str]:
        """Their ids, in the order in which they joined."""
        group = self._groups.get(group_id)
        return [] if group is None else list(group.members)

    def topics_of(self, group_id: str) -> list[str]:
        """All topics that members subscribe to, in order, whether they exist or not."""
        group = self._groups.get(group_id)
        return [] if group is None else group.subscribed_names()

    def list(
        self, states: Collection[str] = (), types: Collection[str] = (), existing: Iterable[str] = ()
    ) -> list[ListedGroup]:
        """Groups with members and those that exist besides, in one of the states and of one of the types, in
        any case; empty: all."""
        if types and SHARE_TYPE not in {group_type.lower() for group_type in types}:
            return []
        wanted = {state.lower() for state in states}
        found = dict.fromkeys(existing, EMPTY) | dict.fromkeys(self._groups, STABLE)
        return [
            ListedGroup(group_id, SHARE_TYPE, state, SHARE_TYPE)
            for group_id, state in found.items()
            if not wanted or state.lower() in wanted
        ]

    def describe(self, group_id: str, *, exists: bool = False) -> ShareDescription:
        """Raises GroupIdNotFound if it has no members and does not exist otherwise."""
        group = self._groups.get(group_id)
        if group is None:
            if not exists:
                raise GroupIdNotFound("There is no share group of this id.")
            group = ShareGroup(group_id)
        return group.describe()

    def check(self) -> None:
        """Assert every invariant of every group."""
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            assert group.members, "M6"
            assert all(self._deadlines.get(_session(group_id, m)) is not None for m in group.members), "M7"
            group.check()

    # --- helpers ---

    def _find_or_make(self, request: ShareHeartbeat, settings: ShareGroupSettings) -> ShareGroup:
        """The group that takes the heartbeat up."""
        group = self._groups.get(request.group_id)
        if group is not None and request.member_id in group.members:
            group.check_epoch(group.members[request.member_id], request.epoch)
            return group
        if request.epoch != JOIN_EPOCH:
            raise UnknownMemberId
        if group is None:
            group = self._groups[request.group_id] = ShareGroup(request.group_id)
        elif len(group.members) >= settings.members_max:
            raise GroupMaxSizeReached
        return group

    def _leave(self, request: ShareHeartbeat, settings: ShareGroupSettings) -> ShareHeartbeatAnswer:
        group_id, member_id = request.group_id, request.member_id
        group = self._groups.get(group_id)
        if group is None or member_id not in group.members:
            raise UnknownMemberId
        self._deadlines.cancel(_session(group_id, member_id))
        self._remove(group, member_id)
        return ShareHeartbeatAnswer(member_id, LEAVE_EPOCH, settings.heartbeat_ms, None, ())

    def _remove(self, group: ShareGroup, member_id: str) -> None:
        group.remove(member_id)
        if not group.members:
            del self._groups[group.group_id]


def _check_request(request: ShareHeartbeat) -> None:
    if not request.group_id:
        raise InvalidRequest("The group id is empty.")
    if not request.member_id:
        raise InvalidRequest("The member id is empty: a member chooses its own.")
    if request.rack_id == "":
        raise InvalidRequest("The rack id is null or not empty.")
    if request.epoch < LEAVE_EPOCH:
        raise InvalidRequest("The member epoch is less than -1.")
    if request.epoch == JOIN_EPOCH and not request.subscribed_names:
        raise InvalidRequest("A member that joins must say what it subscribes to.")


def _session(group_id: str, member_id: str) -> Key:
    return Key(group_id, _SESSION, member_id)


def _by_topic(partitions: Partitions) -> dict[bytes, list[int]]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return topics
