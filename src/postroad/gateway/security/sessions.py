"""Sessions: a user known by a certain password, access key or token. They end when that is no longer good.

Whoever keeps an `Access` for longer than a request (a stream, what is cached) finds out by its session: the
registry hears from the nodes how users stand, and ends those whose password or key is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Final, NamedTuple
from weakref import WeakSet

FOR_EVER_S: Final = inf


class Session:
    """`mark` is of the password, `key_id` of the access key; without either nothing can be taken away.
    A token's ends by itself, `lasts_s` from now."""

    __slots__ = ("__weakref__", "_ends_at", "_was_ended", "key_id", "mark", "user")

    def __init__(
        self, user: str, *, mark: bytes = b"", key_id: str = "", lasts_s: float = FOR_EVER_S
    ) -> None:
        self.user = user
        self.mark = mark
        self.key_id = key_id
        self._was_ended = False
        self._ends_at = time.monotonic() + lasts_s

    @property
    def has_ended(self) -> bool:
        return self._was_ended or time.monotonic() >= self._ends_at

    @property
    def left_s(self) -> float:
        """Until it ends by itself."""
        return self._ends_at - time.monotonic()

    def end(self) -> None:
        self._was_ended = True


class Standing(NamedTuple):
    """By what a user can be known now."""

    marks: frozenset[bytes] = frozenset()
    keys: frozenset[str] = frozenset()

    def admits(self, session: Session) -> bool:
        if session.mark:
            return session.mark in self.marks
        return not session.key_id or session.key_id in self.keys


class Sessions:
    def __init__(self) -> None:
        self._by_user: dict[str, WeakSet[Session]] = {}

    def add(self, session: Session) -> Session:
        self._by_user.setdefault(session.user, WeakSet()).add(session)
        return session

    def find(self, user: str, is_shown: Callable[[bytes], bool]) -> Session | None:
        """One by a password with such a mark, that has not ended."""
        for session in self._by_user.get(user, ()):
            if session.mark and not session.has_ended and is_shown(session.mark):
                return session
        return None

    def users(self) -> list[str]:
        """Whose standing matters: users with sessions that are kept by somebody."""
        for name in [name for name, sessions in self._by_user.items() if not sessions]:
            del self._by_user[name]
        return sorted(self._by_user)

    def review(self, standings: Mapping[str, Standing]) -> None:
        """End the sessions of these users that are good no longer."""
        for name, standing in standings.items():
            for session in list(self._by_user.get(name, ())):
                if not standing.admits(session):
                    session.end()
