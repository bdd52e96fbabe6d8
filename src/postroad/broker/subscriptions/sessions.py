"""Share sessions: which partitions a member reads, so that it names only what changes (KIP-932).

A session belongs to a group's member and to the connection that opened it; when that ends, so does the
session, and what the member held is released. Sessions are soft state, and their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from postroad.broker.connection import Connection
from postroad.broker.partitions import TopicPartition
from postroad.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 0x7FFFFFFF
QUICK_MS: Final = 250  # a member is quick if it is done with what it holds within that time
PACE_MS: Final = 1_000  # its pace is that of so long a time, or of twice as long


class ShareSession:
    __slots__ = (
        "_next_settled_before",
        "_next_since_ms",
        "_pace_since_ms",
        "_settled_before",
        "_taken",
        "asked_ms",
        "closed",
        "connection",
        "epoch",
        "group",
        "is_quick",
        "member",
        "partitions",
        "waits",
    )

    def __init__(self, group: str, member: str, connection: Connection) -> None:
        self.group = group
        self.member = member
        self.connection = connection
        self.closed = False
        self.epoch = 1  # the one that comes next
        self.partitions: dict[TopicPartition, None] = {}  # in the order in which they are served
        self.asked_ms = 0  # when it asked for messages last, on the monotonic clock
        self.waits = False  # a request of it is parked
        self.is_quick = False  # what it holds takes it less than QUICK_MS, at the pace of the last second
        self._taken = 0  # messages that it was given since it was opened
        self._pace_since_ms = 0  # from when on its pace is measured …
        self._settled_before = 0  # … and how many messages it was done with by then
        self._next_since_ms = self._next_settled_before = 0  # the same of the next measurement

    def ask(self, held: int, now_ms: int) -> None:
        """It asks for messages, and holds so many."""
        self.asked_ms = now_ms
        settled = self._taken - held
        if now_ms - self._next_since_ms >= PACE_MS:
            self._pace_since_ms, self._settled_before = self._next_since_ms, self._next_settled_before
            self._next_since_ms, self._next_settled_before = now_ms, settled
        elapsed_ms = min(now_ms - self._pace_since_ms, 2 * PACE_MS)
        done = settled - self._settled_before
        self.is_quick = done > 0 and held * elapsed_ms <= done * QUICK_MS

    def take(self, count: int) -> None:
        """It is given so many messages."""
        self._taken += count

    def asks(self, since_ms: int) -> bool:
        """Whether it waits for messages, or has asked for some after that time."""
        return self.waits or self.asked_ms > since_ms

    def update(self, added: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]) -> None:
        for topic_partition in added:
            self.partitions[topic_partition] = None
        for topic_partition in forgotten:
            self.partitions.pop(topic_partition, None)

    def served(self, topic_partition: TopicPartition) -> None:
        """It goes to the end of the line."""
        if topic_partition in self.partitions:
            del self.partitions[topic_partition]
            self.partitions[topic_partition] = None


class ShareSessions:
    def __init__(self, sessions_max: int) -> None:
        self._max = sessions_max
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._groups: dict[str, dict[str, ShareSession]] = {}  # the same, by group and member

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group: str, member: str, connection: Connection) -> ShareSession:
        """A new one, in place of an old one of that member. What still waits there takes nothing: nobody may
        see it."""
        key = group, member
        before = self._sessions.get(key)
        if before is not None:
            before.closed = True
        elif len(self._sessions) >= self._max:
            raise ShareSessionLimitReached()
        session = self._sessions[key] = ShareSession(group, member, connection)
        self._groups.setdefault(group, {})[member] = session
        return session

    def go_on(self, group: str, member: str, epoch: int, connection: Connection) -> ShareSession:
        """The session that this request continues, or ends. Raises if it is not known, or out of step."""
        session = self._sessions.get((group, member))
        if session is None:
            raise ShareSessionNotFound()
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise InvalidShareSessionEpoch()
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        session.connection = connection
        return session

    def of_group(self, group: str) -> Mapping[str, ShareSession]:
        """The group's sessions by member."""
        return self._groups.get(group, {})

    def has(self, group: str, member: str) -> bool:
        return (group, member) in self._sessions

    def close(self, session: ShareSession) -> bool:
        """Whether it was still open."""
        key = session.group, session.member
        if self._sessions.get(key) is not session:
            return False
        del self._sessions[key]
        del self._groups[session.group][session.member]
        if not self._groups[session.group]:
            del self._groups[session.group]
        session.closed = True
        return True

    def of(self, connection: Connection) -> list[ShareSession]:
        return [session for session in self._sessions.values() if session.connection is connection]
