"""What a mirror knows of its work: each partition with its task and its lag, and what became of the rest."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from postroad.mirrors.access_rules import CarriedRules
from postroad.mirrors.lag import Lag
from postroad.mirrors.partition import MirroredPartition
from postroad.mirrors.positions import Carried

NO_RULES: Final = CarriedRules()

log = logging.getLogger("postroad.mirror")


@dataclass
class Watched:
    """A partition with its tasks, and what is known of its lag."""

    partition: MirroredPartition
    topic_id: bytes  # of the source: another topic may have its name by now
    goal: int = 0  # with `once`: it is done when it is here
    source_end: int = 0
    lag: Lag = field(default_factory=Lag)
    is_ready: bool = False  # it has recovered, and takes records
    halted: str = ""  # why it can't go on
    halts: int = 0
    stopped_working: bool = False  # it knows what is copied, and was halted by what it had to read or write
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def halt(self, why: str) -> None:
        """It can't go on for now, and that is said once."""
        if not self.halted:
            log.error("halted: %s", why)
        self.halted, self.halts, self.stopped_working = why, self.halts + 1, self.is_ready

    def go_on(self) -> None:
        """Nothing keeps it from its work any more."""
        self.halted, self.halts, self.stopped_working = "", 0, False


@dataclass
class Carriage:
    """What became of groups, subscriptions and access rules, and when that was last looked at."""

    groups: dict[str, Carried] = field(default_factory=dict)
    subscriptions: dict[str, Carried] = field(default_factory=dict)
    rules: CarriedRules = NO_RULES
    at: float | None = None
