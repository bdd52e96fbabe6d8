"""`Holdings`: how many messages are in flight, over all partitions of one subscription."""

from __future__ import annotations

from typing import TypeVar

from postroad.queues.settings import QueueSettings

_T = TypeVar("_T")


class Holdings:
    """The limits and the fairness of a subscription look at these counts; who holds nothing is not listed.

    H1 the counts of members, and those of tenants, both add up to `total`.
    """

    def __init__(self) -> None:
        self.total = 0
        self.by_member: dict[str, int] = {}
        self.by_tenant: dict[bytes | None, int] = {}
        self._watchers: list[dict[bytes | None, None]] = []

    def room(self, member: str, settings: QueueSettings) -> int:
        """How many more the member may take, as far as the subscription's limits go; not above 0: none."""
        return min(settings.member_locks_max - self.by_member.get(member, 0), settings.locks_max - self.total)

    def take(self, member: str, count: int, tenant: bytes | None = None) -> None:
        self.total += count
        self.by_member[member] = self.by_member.get(member, 0) + count
        self.by_tenant[tenant] = self.by_tenant.get(tenant, 0) + count

    def give(self, member: str, count: int, tenant: bytes | None = None) -> None:
        self.total -= count
        _lower(self.by_member, member, count)
        _lower(self.by_tenant, tenant, count)
        for fallen in self._watchers:
            fallen[tenant] = None

    def watch(self) -> dict[bytes | None, None]:
        """A dict that every tenant whose count falls is entered into, until `unwatch`."""
        fallen: dict[bytes | None, None] = {}
        self._watchers.append(fallen)
        return fallen

    def unwatch(self, fallen: dict[bytes | None, None]) -> None:
        self._watchers = [each for each in self._watchers if each is not fallen]

    def check(self) -> None:
        assert sum(self.by_member.values()) == sum(self.by_tenant.values()) == self.total, "H1"
        assert min(self.by_member.values(), default=1) > 0, "H1"
        assert min(self.by_tenant.values(), default=1) > 0, "H1"


def _lower(counts: dict[_T, int], key: _T, count: int) -> None:
    left = counts[key] - count
    assert left >= 0, "given back more than was taken"
    if left:
        counts[key] = left
    else:
        del counts[key]
