"""A subscription as one seed draws it: its topics, its configs, and how its members behave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

NO_LIMIT: Final = 0
TENANT_HEADER: Final = "tenant"


@dataclass(frozen=True)
class QueuePlan:
    name: str
    topics: Sequence[str]
    lock_ms: int
    delivery_limit: int
    backoff_ms: int
    backoff_factor: float
    backoff_max_ms: int
    backoff_jitter: float
    by_key: bool
    fair: bool
    dead_letters: bool
    session_ms: int
    partition_locks_max: int
    is_moved: bool = False  # operators seek, purge, alter and delete it

    @classmethod
    def draw(
        cls, random: Random, name: str, topics: Sequence[str], *, by_key: bool = False, is_moved: bool = False
    ) -> QueuePlan:
        return cls(
            name=name,
            topics=topics,
            lock_ms=random.choice((500, 1_000, 2_000, 5_000)),
            delivery_limit=random.choice((2, 3, 5, NO_LIMIT)),
            backoff_ms=random.choice((0, 0, 100, 400)),
            backoff_factor=random.choice((1.0, 2.0, 3.0)),
            backoff_max_ms=random.choice((400, 1_500)),
            backoff_jitter=random.choice((0.0, 0.0, 0.5)),
            by_key=by_key,
            fair=random.random() < 0.3,
            dead_letters=random.random() < 0.75,
            session_ms=random.choice((4_000, 45_000)),
            partition_locks_max=random.choice((5, 40, 100_000)),
            is_moved=is_moved,
        )

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.name}.dead"

    @property
    def lock_s(self) -> float:
        return self.lock_ms / 1000

    def configs(self) -> dict[str, str]:
        """As an operator sets them."""
        return {
            "postroad.topics": ",".join(self.topics),
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(self.lock_ms),
            "share.delivery.count.limit": str(self.delivery_limit),
            "postroad.backoff.initial.ms": str(self.backoff_ms),
            "postroad.backoff.factor": str(self.backoff_factor),
            "postroad.backoff.max.ms": str(self.backoff_max_ms),
            "postroad.backoff.jitter": str(self.backoff_jitter),
            "postroad.order": "key" if self.by_key else "none",
            "postroad.fair.by": TENANT_HEADER if self.fair else "",
            "postroad.dead.letters": str(self.dead_letters).lower(),
            "share.heartbeat.interval.ms": "1000",
            "share.session.timeout.ms": str(self.session_ms),
            "share.partition.max.record.locks": str(self.partition_locks_max),
        }

    def backoff_s(self, count: int) -> float:
        """The shortest wait after so many deliveries."""
        full = min(self.backoff_ms * self.backoff_factor ** (count - 1), self.backoff_max_ms)
        return full * (1 - self.backoff_jitter) / 1000

    def is_last(self, count: int) -> bool:
        """Whether a message that was delivered so often does not come again."""
        return self.delivery_limit != NO_LIMIT and count >= self.delivery_limit
