"""What the members of one group were told and saw: the material of the checks of L14 and L5.

A committed offset is a register of its partition. Whoever writes it notes so before the call (`handed`) and
after it (`told`); between the two, and for ever after a call that came to no end, it may be in effect or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from postroad.client.groups import Committer

NEVER: Final = float("inf")
MARGIN_S: Final = 0.01  # nodes count milliseconds
STALE_OFFSET: Final = 1_000_000  # commits that must be refused have offsets from here on


@dataclass
class Write:
    """An offset that was committed, or None: it was deleted. `told` is NEVER while nobody knows."""

    offset: int | None
    handed: float
    told: float = NEVER


class Read(NamedTuple):
    """A committed offset that somebody was told; None: there was none."""

    partition: int
    offset: int | None
    asked: float
    told: float
    by: str


class Given(NamedTuple):
    """A member of the classic protocol was told what it owns in a generation."""

    generation: int
    partition: int
    owner: str  # the instance id of a static member
    asked: float
    told: float


class Superseded(NamedTuple):
    """An identity that is no longer the group's: asked for at `since`, known to be stale at `known_at`."""

    committer: Committer
    since: float
    known_at: float


class StaleCommit(NamedTuple):
    """A commit by an identity that was no longer the group's when it was handed over."""

    who: str
    since: float
    known_at: float
    handed: float
    is_taken: bool


@dataclass
class Pulse:
    """The heartbeats of a member of the newer protocol, from a join to the next."""

    session_s: float
    rebalance_s: float
    answered: list[float] = field(default_factory=list)  # when they were sent
    unanswered_since: float = NEVER  # the first one since the last answer

    def beats(self, now: float) -> None:
        self.unanswered_since = min(self.unanswered_since, now)

    def is_answered(self, sent: float) -> None:
        self.answered.append(sent)
        self.unanswered_since = NEVER

    def lasts_over(self, begin: float, end: float) -> bool:
        """Whether it was a member all the time: the second heartbeat was sent after the join's answer."""
        return len(self.answered) > 1 and self.answered[1] <= begin and end <= self.answered[-1]

    def is_kept_at(self, moment: float) -> bool:
        """Whether the group must have counted it as alive at this moment."""
        return any(sent <= moment < sent + self.session_s - MARGIN_S for sent in self.answered)


@dataclass
class Hold:
    """A partition in the hands of a member of the newer protocol."""

    owner: str
    partition: int
    asked: float
    since: float  # when it was told
    pulse: Pulse
    until: float = NEVER  # when it began to say that it has given the partition up, or left
    revoked: float = NEVER  # from then on the group may have waited for it to do so

    def is_due_at(self, moment: float) -> bool:
        """Whether the partition must have been kept for this member at this moment."""
        revocable = moment >= self.revoked + self.pulse.rebalance_s - MARGIN_S
        return self.since <= moment < self.until and self.pulse.is_kept_at(moment) and not revocable


@dataclass
class Stretch:
    """The records of one partition that came within one assignment."""

    who: str
    partition: int
    begin: int
    asked: float
    told: float
    next: int
    steps: list[tuple[int, int]] = field(default_factory=list)  # (what was next, what came)

    def add(self, offset: int) -> None:
        if offset != self.next:
            self.steps.append((self.next, offset))
        self.next = offset + 1


class GroupHistory:
    """`numbered`: generations rise for as long as the group lives, so that a later one makes all before it
    stale. In a group that changes its protocol that holds for each member alone."""

    def __init__(self, group: str, topic: str, numbered: bool = False) -> None:
        self.group = group
        self.topic = topic
        self.numbered = numbered
        self.writes: dict[int, list[Write]] = defaultdict(list)
        self.reads: list[Read] = []
        self.given: list[Given] = []
        self.holds: list[Hold] = []
        self.stale: list[StaleCommit] = []
        self.stretches: list[Stretch] = []
        self.pulses: list[Pulse] = []
        self.operated: list[tuple[float, float]] = []  # when an operator's commit was handed over, and taken
        self.superseded: list[Superseded] = []
        self._current: dict[Committer, float] = {}  # and when it was asked for

    # --- who is a member

    def joins(self, committer: Committer, asked: float) -> bool:
        """Somebody was told that this is its identity now; True if another had to make way for it."""
        if committer in self._current:
            return False
        outdated = [known for known in self._current if self._is_outdated(known, committer)]
        self._current[committer] = asked
        for known in outdated:
            self.fences(known, asked)
        return bool(outdated)

    def fences(self, committer: Committer, asked: float) -> None:
        """Somebody was told that this identity is no longer the group's."""
        since = self._current.pop(committer, None)
        if since is not None and committer.generation > 0:
            self.superseded.append(Superseded(committer, since, asked))

    def _is_outdated(self, known: Committer, committer: Committer) -> bool:
        if known.instance_id is not None and known.instance_id == committer.instance_id:
            return known.member_id != committer.member_id or known.generation < committer.generation
        return (self.numbered or known.member_id == committer.member_id) and (
            known.generation < committer.generation
        )

    # --- offsets

    def hands_over(self, offsets: Mapping[int, int | None], now: float) -> list[Write]:
        """Somebody is about to commit these, or to delete them."""
        made = []
        for partition, offset in offsets.items():
            made.append(Write(offset, now))
            self.writes[partition].append(made[-1])
        return made

    def was_refused(self, writes: Sequence[Write]) -> None:
        """They had no effect, and never will."""
        for found in self.writes.values():
            found[:] = [write for write in found if not any(write is refused for refused in writes)]

    def begins(self, who: str, partition: int, begin: int, asked: float, told: float) -> Stretch:
        stretch = Stretch(who, partition, begin, asked, told, next=begin)
        self.stretches.append(stretch)
        return stretch


def acknowledged(writes: Sequence[Write], now: float) -> None:
    for write in writes:
        write.told = now
