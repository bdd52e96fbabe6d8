"""What the members of one subscription were told and saw: the material of the queue's checks.

Nobody but the node knows when exactly it handed out a message or took an answer: a client knows the moment
before it asked and the moment at which it heard. All that checks claim follows from these two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType
from simulator.workloads.queue_plan import QueuePlan

Headers = Sequence[tuple[str, bytes | None]]

NEVER: Final = -inf
LATE_S: Final = 30.0  # a request whose answer was lost may take effect until then


class Position(NamedTuple):
    topic: str
    partition: int
    offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} at {self.offset}"


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # nothing was changed
    UNKNOWN = "unknown"  # an error, or no answer: it may have happened


@dataclass
class Saying:
    """What a member said of a message, and what became of that."""

    kind: AckType
    said_at: float
    delay_s: float | None = None  # of a release
    lock_s: float = 0.0  # of a renewal
    reason: str = ""  # of a rejection
    outcome: Outcome = Outcome.UNKNOWN
    told_at: float = inf
    no_lock: bool = False  # it was refused because its member does not hold the message

    @property
    def may_count(self) -> bool:
        return self.outcome is not Outcome.REFUSED

    def ends(self) -> bool:
        """Whether it is to end the message for good."""
        return self.kind in (AckType.ACCEPT, AckType.REJECT)


class Span:
    """A time in which a member's session, or its membership, is known to have lasted: the node answered the
    same session at its beginning and at its end. So the node's process lived, and released nothing of what
    the member held for the session's sake."""

    def __init__(self) -> None:
        self.began = inf
        self.proven_until = NEVER

    def prove(self, asked_at: float, came_at: float) -> None:
        """A request succeeded: the node took it at some moment between these."""
        self.began = min(self.began, came_at)
        self.proven_until = max(self.proven_until, asked_at)


@dataclass
class Delivery:
    """A message that came to a member: acquired between `asked_at` and `came_at`."""

    position: Position
    value: bytes
    key: bytes | None
    headers: Headers
    timestamp: int
    count: int
    member: str
    asked_at: float
    came_at: float
    lock_s: float
    session: Span
    membership: Span
    clock_jumps: int = 0  # of the node's wall clock until then
    forgotten_at: float = inf  # the ledger was loaded anew, without the locks
    said: list[Saying] = field(default_factory=list)  # by its member of this message, in all its deliveries
    again_at: float = inf  # when the message came to the same member again

    @property
    def sayings(self) -> list[Saying]:
        """What may concern this delivery: neither what was answered before it, nor what was said after the
        message had come again."""
        return [
            saying
            for saying in self.said
            if saying.told_at > self.asked_at and saying.said_at < self.again_at
        ]

    def is_of(self, saying: Saying) -> bool:
        """Whether it certainly speaks of this delivery. Members settle while they wait for other nodes, so
        what was said before this one came may be of the delivery before."""
        return saying.said_at >= self.came_at

    def surely_held_until(self, but_for: Saying | None = None) -> float:
        """Until when its member certainly holds it: its lock can't have ended by then, the member has said
        nothing that ends it, and its session, its membership and its leader lasted."""
        until = self.asked_at + self.lock_s
        for saying in self.sayings:
            if saying is but_for or not saying.may_count:
                continue
            if saying.kind is not AckType.RENEW:
                until = min(until, saying.said_at)
            elif saying.outcome is Outcome.DONE and self.is_of(saying):
                until = saying.said_at + saying.lock_s
            else:
                until = min(until, saying.said_at + saying.lock_s)
        return min(until, self.session.proven_until, self.membership.proven_until, self.forgotten_at)

    def may_be_held_until(self, but_for: Saying | None = None) -> float:
        """From then on its member certainly does not hold it by this delivery."""
        until = self.came_at + self.lock_s
        for saying in self.sayings:
            if saying is but_for or not saying.may_count:
                continue
            if saying.kind is AckType.RENEW:
                until = max(until, saying.told_at + saying.lock_s)
            elif saying.outcome is Outcome.DONE and self.is_of(saying):
                return min(until, saying.told_at)
        return until

    def __str__(self) -> str:
        return f"{self.position} ({self.value[:24]!r}, delivery {self.count} to {self.member[:8]})"


class Stray(NamedTuple):
    """Said of a message by a member that did not get it."""

    position: Position
    value: bytes
    member: str
    saying: Saying
    may_hold: bool  # an answer to it was lost: perhaps the message was in it


class LostFetch(NamedTuple):
    """A fetch without an answer: what it acquired nobody saw."""

    member: str
    asked_at: float
    ended_at: float


class SeenStarts(NamedTuple):
    asked_at: float
    came_at: float
    starts: Mapping[TopicPartition, int]


class MoveKind(StrEnum):
    SEEK = "seek"
    PURGE = "purge"
    CREATE = "create"  # anew, after it was deleted


@dataclass
class Move:
    """An operator let the subscription go on from these offsets."""

    kind: MoveKind
    starts: Mapping[TopicPartition, int]
    said_at: float
    told_at: float = inf
    outcome: Outcome = Outcome.UNKNOWN

    @property
    def over_at(self) -> float:
        """It has taken effect by then, or never will."""
        return self.told_at if self.outcome is Outcome.DONE else self.said_at + LATE_S


class Letter(NamedTuple):
    """A dead letter, as it was found in the end."""

    position: Position  # where the message was
    key: bytes | None
    value: bytes
    headers: dict[str, bytes]

    def text(self, name: str) -> str:
        return self.headers.get(name, b"").decode()


class QueueHistory:
    def __init__(self, plan: QueuePlan) -> None:
        self.plan = plan
        self.deliveries: dict[Position, list[Delivery]] = {}
        self.strays: dict[Position, list[Stray]] = {}
        self.lost_fetches: list[LostFetch] = []
        self.starts: list[SeenStarts] = []
        self.moves: list[Move] = []
        self.letters: dict[Position, list[Letter]] = {}
        self.lags: dict[TopicPartition, int] = {}  # in the end

    def all(self) -> Iterator[Delivery]:
        for deliveries in self.deliveries.values():
            yield from deliveries

    def add(self, delivery: Delivery) -> None:
        """A member speaks of a message, not of a delivery: what it says of one holds for all to it."""
        for earlier in self.of(delivery.position, delivery.value):
            if earlier.member == delivery.member:
                delivery.said = earlier.said
                earlier.again_at = min(earlier.again_at, delivery.came_at)
        self.deliveries.setdefault(delivery.position, []).append(delivery)

    def of(self, position: Position, value: bytes) -> list[Delivery]:
        """The deliveries of one message, in the order in which they came."""
        return [each for each in self.deliveries.get(position, ()) if each.value == value]

    def sayings(self, position: Position, value: bytes) -> Iterator[Saying]:
        for delivery in self.of(position, value):
            yield from delivery.sayings
        for stray in self.strays.get(position, ()):
            if stray.value == value:
                yield stray.saying

    def meant_for_others(self, position: Position, value: bytes) -> Iterator[Saying]:
        """What may have counted for this message though it was said of one that had its offset before a power
        cut took it: members settle offsets, and whoever said it had this one by then, perhaps unseen."""
        given = [(each.member, each.asked_at) for each in self.of(position, value)]
        given += [(each.member, each.asked_at) for each in self.lost_fetches]
        for other in self.deliveries.get(position, ()):
            if other.value != value:
                for saying in other.sayings:
                    if any(member == other.member and asked < saying.told_at for member, asked in given):
                        yield saying

    def was_moved(self, since: float, until: float) -> bool:
        """Whether an operator may have moved it between these moments."""
        return any(move.said_at <= until and move.over_at >= since for move in self.moves)
