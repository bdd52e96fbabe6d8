"""`Membership`: who is a member of which subscription, and through which share sessions members read.

A member that leaves, goes silent or loses its session gives back what it holds, at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from postroad.broker.connection import Connection
from postroad.broker.subscriptions.sessions import ShareSession, ShareSessions
from postroad.errors import GroupIdNotFound
from postroad.groups.settings import ShareGroupSettings
from postroad.groups.share import ShareGroups

if TYPE_CHECKING:
    from postroad.broker.node import Node


class Membership:
    def __init__(self, node: Node) -> None:
        self.members = ShareGroups()
        self.sessions = ShareSessions(node.settings.limits.share_sessions_max)
        self._node = node
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def settings(self, group_id: str) -> ShareGroupSettings:
        """What holds for the group's members."""
        settings = self._node.subscriptions.settings(group_id)
        return ShareGroupSettings(
            settings.heartbeat_ms, settings.session_ms, self._node.settings.groups.members_max
        )

    def check_coordinator(self, group_id: str) -> None:
        """Raises NotCoordinator if another node (perhaps) coordinates the group: it knows its members."""
        self._node.groups.check_coordinates(group_id)

    def resigned(self, index: int) -> None:
        """Another node coordinates the groups of this partition of `__consumer_offsets`: members join there.
        What they hold stays theirs."""
        for group_id in self.members.ids():
            if self._node.groups.index_of(group_id) == index:
                self.members.forget(group_id)

    def check_group_type(self, group_id: str) -> None:
        """Raises if the id is a consumer group's."""
        coordinator = self._node.groups.find(group_id)
        coordinator.check_loaded()
        if coordinator.groups.exists(group_id):
            raise GroupIdNotFound(f"Group {group_id} is not a share group.")

    def arm(self) -> None:
        """Set the timer for the next member that may go silent; call it after a heartbeat."""
        at = self.members.next_deadline()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            delay_ms = max(at - self._node.clock.monotonic_ms(), 0) + 1
            self._timer = self._node.loop.call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        for group_id, member in self.members.expire(self._node.clock.now()):
            self.left(group_id, member)
        self.arm()

    def left(self, group_id: str, member: str) -> None:
        """What it held is there for others."""
        self._node.subscriptions.release_member(group_id, member)

    def open_session(self, group: str, member: str, connection: Connection) -> ShareSession:
        session = self.sessions.open(group, member, connection)
        connection.when_closed(self.disconnected)
        return session

    def end_session(self, session: ShareSession) -> None:
        if self.sessions.close(session):
            self.left(session.group, session.member)

    def disconnected(self, connection: Connection) -> None:
        for session in self.sessions.of(connection):
            self.end_session(session)
            settings = self.settings(session.group)
            self.members.suspect(session.group, session.member, settings, self._node.clock.now())
        self.arm()
