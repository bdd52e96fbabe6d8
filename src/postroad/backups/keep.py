"""Which backups a prune keeps. Their names tell when they were made; days and months are those of UTC.

A backup is kept if any of the rules keeps it. The newest one is kept whatever the rules say: the next backup
builds on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from postroad.backups.manifest import made_at


class Keep(NamedTuple):
    """Rules; 0: there is no such rule."""

    last: int = 0  # the newest ones, so many
    days: int = 0  # all that are not older
    weekly: int = 0  # the newest of each of the last weeks that have one, so many weeks
    monthly: int = 0

    def kept(self, names: Sequence[str], now_ms: int) -> list[str]:
        """Those of the names, which are sorted by time, that stay."""
        since = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=self.days)
        found = {
            *names[-1:],
            *(names[-self.last :] if self.last else ()),
            *(name for name in names if self.days and made_at(name) >= since),
            *_newest(names, lambda at: tuple(at.isocalendar())[:2], self.weekly),
            *_newest(names, lambda at: (at.year, at.month), self.monthly),
        }
        return [name for name in names if name in found]


def _newest(names: Sequence[str], period: Callable[[datetime], tuple[int, ...]], count: int) -> list[str]:
    """The newest backup of each of the last periods."""
    newest = {period(made_at(name)): name for name in names}
    return list(newest.values())[-count:] if count else []
