"""A classic group: its members and where its rebalance stands.

    Empty                      a member joins                          ──▶ PreparingRebalance
    PreparingRebalance         all have joined, or time is up          ──▶ CompletingRebalance
    (a KIP-848 group)          its last KIP-848 member leaves          ──▶ PreparingRebalance
    CompletingRebalance        the leader's assignment is stored       ──▶ Stable
    CompletingRebalance, Stable   a member joins, leaves, goes silent  ──▶ PreparingRebalance
    any                        nobody is left                          ──▶ Empty

Hard state is the last committed `ClassicValue`: a generation with its members and their assignments, or an
empty group. A rebalance in progress is soft. If it is lost with the coordinator, members go on in the
stored generation or join again; nobody has been given partitions in a generation that was not committed
first (L14).

Invariants, asserted by `check`:
C1  in Stable and Empty what lives here is what is stored;
C2  a member waits in join only while PreparingRebalance, in sync only while CompletingRebalance;
C3  the leader of CompletingRebalance and Stable is a member, and all members know the chosen protocol;
C4  an instance id belongs to one member, and that member has it;
C5  an id that was handed out and not used yet is no member;
C6  the generation is never below the stored one;
C7  every member has a session deadline, and a waiting rebalance has one too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from postroad.errors import FencedInstanceId, UnknownMemberId
from postroad.groups.deadlines import Timers
from postroad.groups.records import ClassicMemberValue, ClassicValue
from postroad.groups.requests import JoinRequest
from postroad.groups.settings import GroupSettings
from postroad.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics

SESSION: Final = "session"  # what a deadline is for: a member goes silent
PENDING: Final = "pending"  # … an id that was handed out is not used
JOIN: Final = "join"  # … the join phase ends
SYNC: Final = "sync"  # … the last moment to fetch the new assignment


class ClassicState(StrEnum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"  # only in answers: there is no such group


class ClassicMember:
    """A member as it lives: the stored part, and the requests that it has waiting."""

    __slots__ = ("is_new", "join_token", "sync_token", "value")

    def __init__(self, value: ClassicMemberValue, *, is_new: bool = False) -> None:
        self.value = value
        self.is_new = is_new  # its first join is waiting, so it can't heartbeat yet
        self.join_token: object | None = None
        self.sync_token: object | None = None

    @property
    def is_waiting(self) -> bool:
        return self.join_token is not None or self.sync_token is not None

    def metadata(self, protocol: str) -> bytes:
        return next((metadata for name, metadata in self.value.protocols if name == protocol), b"")


class ClassicGroup:
    def __init__(self, group_id: str, settings: GroupSettings, timers: Timers) -> None:
        self.group_id = group_id
        self.settings = settings
        self.timers = timers
        self.stored: ClassicValue | None = None
        self.state = ClassicState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, ClassicMember] = {}
        self.by_instance: dict[str, str] = {}
        self.pending: set[str] = set()  # ids handed out, not joined with yet (KIP-394)
        self.unsynced: set[str] = set()  # members that have not fetched this generation's assignment
        self.opening: Opening | None = None  # an empty group waits a moment for more members
        self.waiting_joins = 0
        self._supporters: Counter[str] = Counter()  # how many members know each protocol

    # --- hard state ---

    def adopt(self, value: ClassicValue) -> None:
        """Become what was committed: Stable with these members, or Empty; or, where a KIP-848 group has
        become a classic one, about to rebalance. Ids that were handed out stay so."""
        staying = {stored.member_id for stored in value.members}
        unsynced = self.unsynced & staying
        for member_id in [*self.members]:
            self.remove_member(member_id, forget_timer=member_id not in staying)
        for stored in value.members:
            self.add_member(ClassicMember(stored))
        self.stored = value
        self.generation = value.generation
        self.protocol_type, self.protocol, self.leader = value.protocol_type, value.protocol, value.leader
        self.unsynced = unsynced
        if value.members and not value.leader:
            # The deadline was set when the change of protocol was decided.
            self.state = ClassicState.PREPARING
        else:
            self.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
            self._leave_rebalance()

    def clear(self) -> None:
        """Drop all members: nobody is left in a group that was never stored, or they are in a KIP-848 group
        now."""
        for member_id in [*self.members]:
            self.remove_member(member_id)
        self.state = ClassicState.EMPTY
        self.protocol_type = self.protocol = self.leader = ""
        self._leave_rebalance()

    def forget_pending(self, member_ids: Iterable[str]) -> None:
        """Ids that were handed out are not joined with any more."""
        for member_id in member_ids:
            self.pending.discard(member_id)
            self.timers.cancel(PENDING, member_id)

    def _leave_rebalance(self) -> None:
        self.opening = None
        self.timers.cancel(JOIN)
        if not self.unsynced:
            self.timers.cancel(SYNC)

    @property
    def is_idle(self) -> bool:
        """Nothing would be lost with this object but what is stored."""
        return not self.members and not self.pending

    # --- members ---

    def add_member(self, member: ClassicMember) -> None:
        value = member.value
        self.members[value.member_id] = member
        self.waiting_joins += member.join_token is not None
        self._supporters.update(dict(value.protocols).keys())
        if value.instance_id is not None:
            self.by_instance[value.instance_id] = value.member_id

    def remove_member(self, member_id: str, *, forget_timer: bool = True) -> ClassicMember:
        member = self.members.pop(member_id)
        self.waiting_joins -= member.join_token is not None
        self._supporters.subtract(dict(member.value.protocols).keys())
        self._supporters += Counter()  # drops the zeros
        self.unsynced.discard(member_id)
        instance_id = member.value.instance_id
        if instance_id is not None and self.by_instance.get(instance_id) == member_id:
            del self.by_instance[instance_id]
        if self.leader == member_id:
            self.leader = ""
        if forget_timer:
            self.timers.cancel(SESSION, member_id)
        return member

    def change_member(self, member: ClassicMember, value: ClassicMemberValue) -> None:
        """The same member with other protocols or timeouts."""
        self._supporters.subtract(dict(member.value.protocols).keys())
        self._supporters.update(dict(value.protocols).keys())
        self._supporters += Counter()  # drops the zeros
        member.value = value

    def find_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Raises FencedInstanceId if another member has taken the instance id over, else UnknownMemberId."""
        if instance_id is not None and self.by_instance.get(instance_id, member_id) != member_id:
            raise FencedInstanceId
        member = self.members.get(member_id)
        if member is None or (instance_id is not None and instance_id not in self.by_instance):
            raise UnknownMemberId
        return member

    def keep_alive(self, member: ClassicMember, now_ms: int) -> None:
        waits_long = member.is_new and member.join_token is not None
        timeout_ms = (
            self.settings.new_member_join_timeout_ms if waits_long else member.value.session_timeout_ms
        )
        self.timers.set(SESSION, now_ms + timeout_ms, member.value.member_id)

    # --- protocols ---

    def supports(self, request: JoinRequest, instead_of: ClassicMember | None = None) -> bool:
        """Has the request an assignor in common with all members (but the one that it replaces)?"""
        others = len(self.members) - (instead_of is not None)
        if not others:
            return True
        replaced = {name for name, _ in instead_of.value.protocols} if instead_of is not None else set()
        return request.protocol_type == self.protocol_type and any(
            self._supporters[name] - (name in replaced) == others for name, _ in request.protocols
        )

    def choose_protocol(self, instead: tuple[str, tuple[tuple[str, bytes], ...]] | None = None) -> str:
        """Each member votes for the first of its protocols that all know; `instead` changes one member's
        list."""
        protocols = {member_id: member.value.protocols for member_id, member in self.members.items()}
        if instead is not None:
            protocols[instead[0]] = instead[1]
        known = Counter(name for offered in protocols.values() for name in dict(offered))
        common = {name for name, count in known.items() if count == len(protocols)}
        votes = Counter(
            next(name for name, _ in offered if name in common) for offered in protocols.values() if common
        )
        return min(votes, key=lambda name: (-votes[name], name), default="")

    def subscribed(self, topic: str) -> bool:
        """May a member be reading this topic? Yes, if their metadata is not for us to read."""
        if not self.members:
            return False
        if self.protocol_type != CONSUMER_PROTOCOL:
            return True
        read = (
            subscribed_topics(metadata) for m in self.members.values() for _, metadata in m.value.protocols
        )
        return any(topics is None or topic in topics for topics in read)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.value.rebalance_timeout_ms for member in self.members.values()), default=0)

    def check(self) -> None:
        stored = self.stored
        if self.state in (ClassicState.STABLE, ClassicState.EMPTY) and stored is not None:
            assert {m.value for m in self.members.values()} == set(stored.members), "C1"
            assert (self.generation, self.leader) == (stored.generation, stored.leader), "C1"
        joins = sum(member.join_token is not None for member in self.members.values())
        assert joins == self.waiting_joins, "C2"
        assert not joins or self.state is ClassicState.PREPARING, "C2"
        syncs = any(member.sync_token is not None for member in self.members.values())
        assert self.state is ClassicState.COMPLETING or not syncs, "C2"
        if self.state in (ClassicState.COMPLETING, ClassicState.STABLE):
            assert self.leader in self.members, "C3"
            assert all(self.protocol in dict(m.value.protocols) for m in self.members.values()), "C3"
        instances = {
            m.value.instance_id: i for i, m in self.members.items() if m.value.instance_id is not None
        }
        assert instances == self.by_instance, "C4"
        assert not self.pending & self.members.keys(), "C5"
        assert stored is None or self.generation >= stored.generation, "C6"
        assert all(self.timers.get(SESSION, member_id) is not None for member_id in self.members), "C7"
        assert self.state is not ClassicState.PREPARING or self.timers.get(JOIN) is not None, "C7"


class Opening:
    """An empty group waits for more members before its first generation, so that those that start together
    get one assignment. Each newcomer prolongs the wait, but not past `ends_ms`."""

    __slots__ = ("ends_ms",)

    def __init__(self, ends_ms: int) -> None:
        self.ends_ms = ends_ms
