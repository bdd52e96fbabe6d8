"""Share sessions: which partitions a member reads, so that it names only what changes (KIP-932).

A session belongs to a group's member and to the connection that opened it; when that ends, so does the
session, and what the member held is released. Sessions are soft state, and their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from postroad.broker.connection import Connection
from postroad.broker.partitions import TopicPartition
from postroad.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 0x7FFFFFFF


class ShareSession:
    __slots__ = ("closed", "connection", "epoch", "group", "member", "partitions")

    def __init__(self, group: str, member: str, connection: Connection) -> None:
        self.group = group
        self.member = member
        self.connection = connection
        self.closed = False
        self.epoch = 1  # the one that comes next
        self.partitions: dict[TopicPartition, None] = {}  # in the order in which they are served

    def update(self, added: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]) -> None:
        for place in added:
            self.partitions[place] = None
        for place in forgotten:
            self.partitions.pop(place, None)

    def served(self, place: TopicPartition) -> None:
        """It goes to the end of the line."""
        if place in self.partitions:
            del self.partitions[place]
            self.partitions[place] = None


class ShareSessions:
    def __init__(self, sessions_max: int) -> None:
        self._max = sessions_max
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group: str, member: str, connection: Connection) -> ShareSession:
        """A new one, in place of an old one of that member."""
        key = group, member
        if key not in self._sessions and len(self._sessions) >= self._max:
            raise ShareSessionLimitReached()
        session = self._sessions[key] = ShareSession(group, member, connection)
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

    def has(self, group: str, member: str) -> bool:
        return (group, member) in self._sessions

    def close(self, session: ShareSession) -> bool:
        """Whether it was still open."""
        key = session.group, session.member
        if self._sessions.get(key) is not session:
            return False
        del self._sessions[key]
        session.closed = True
        return True

    def of(self, connection: Connection) -> list[ShareSession]:
        return [session for session in self._sessions.values() if session.connection is connection]
