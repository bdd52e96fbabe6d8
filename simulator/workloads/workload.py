"""What every workload is made of.

A workload owns its topics and groups, so that it can say what must be found there. Its roles are clients in
processes of their own; a role that ends, by itself or with an error of Postroad's, is begun anew after a
moment, as a supervisor would. When the faults are over (`stage.calm`) roles send nothing new but go on
with all the rest; `finish` then gets a healthy cluster and reads what the checks need. `epilogue` comes last,
when everybody has read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final

from postroad.client.client import Client
from simulator.cluster_history import ClusterHistory
from simulator.conditions import Conditions
from simulator.faults import Flip
from simulator.violation import Violation
from simulator.world import World

if TYPE_CHECKING:
    from simulator.service import Service

NEVER: Final = -1.0  # before all times

Role = Callable[[Client], Awaitable[None]]


@dataclass
class Stage:
    """What a workload sees of its scenario."""

    world: World
    random: Random  # of this workload alone
    conditions: Conditions
    history: ClusterHistory
    seconds: float  # how long faults strike
    calm: bool = False  # they are over
    power_cuts: list[float] = field(default_factory=list)  # when; shared by all workloads
    violations: list[Violation] = field(default_factory=list)  # seen while it ran; shared as well
    services: Sequence[Service] = ()  # the nodes from inside, for what no client can see; their store as well
    flips: Sequence[Flip] = ()  # of bits; shared as well

    @property
    def may_lose_what_was_acknowledged(self) -> bool:
        """A power cut may have taken what a log without sync had acknowledged."""
        return bool(self.losses())

    @property
    def is_cluster(self) -> bool:
        return len(self.services) > 1

    def wall_range_ms(self, since: float, until: float) -> tuple[int, int]:
        """The earliest and the latest time that a node's wall clock showed between two moments."""
        ranges = [service.machine.wall_range_ms(since, until) for service in self.services]
        return min(earliest for earliest, _ in ranges), max(latest for _, latest in ranges)

    def passed_ms(self, since: float, until: float) -> int:
        """The most time that may have passed between two moments, by the clocks of those who led."""
        earliest, latest = self.wall_range_ms(since, until)
        return latest - earliest

    def losses(self, *topics: str) -> Sequence[float]:
        """Power cuts that may have taken what these topics (any, if none is named) had acknowledged before.

        One node: each, unless it syncs first. A cluster: only those after which nobody had all of it.
        """
        if self.conditions.survives_power_cuts:
            return ()
        return self.history.losses(topics) if self.is_cluster else self.power_cuts

    def seen_until(self, topic: str, partition: int) -> float:
        """Whoever reads now sees all that was committed by this moment.

        A leader that has not heard yet that another one was elected still answers: with what it knew when
        it was replaced, and never with anything else.
        """
        until = self.world.now
        for service in self.services:
            if service.node is None or not service.answers:
                continue
            found = service.node.partitions.find(topic, partition)
            if found is not None and found.leads:
                key = found.topic_id, partition
                until = min(until, self.history.replaced_at(key, found.leader_epoch))
        return until

    def is_led_anew(self, topic: str, partition: int, since: float) -> bool:
        """Whether a leader was elected since then that may not have heard of what was deleted before."""
        found = self.history.truth.topics.get(topic)
        return (
            self.is_cluster and found is not None and self.history.is_led_anew((found.id, partition), since)
        )

    def told_until(self) -> float:
        """Whichever node is asked about topics now knows of all changes that were made by this moment."""
        nodes = [service.node for service in self.services if service.node is not None and service.answers]
        return min((self.history.known_until(node.image.revision) for node in nodes), default=self.world.now)

    def broken(self, invariant: str, text: str) -> None:
        """A promise was broken just now."""
        self.violations.append(Violation(invariant, text, self.world.now))


class Workload(ABC):
    name: ClassVar[str]
    one_node: ClassVar[bool] = True  # it runs with one node
    many_nodes: ClassVar[bool] = False  # it runs with several nodes
    is_drawn: ClassVar[bool] = True  # seeds draw it; else it runs only where it is named
    racks: ClassVar[bool] = False  # it wants each node in a rack of its own
    fragile: ClassVar[Sequence[str]] = ()  # topics whose files may be damaged

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    @abstractmethod
    def roles(self) -> Mapping[str, Role]:
        """The clients, by the names of their processes."""

    @abstractmethod
    async def finish(self, client: Client) -> None:
        """Read what the checks need. All is well by now: an error, or no end, is a violation."""

    def epilogue(self) -> Role | None:
        """What others must not meet while they read, such as a node that stays away; it leaves all well."""
        return None

    @abstractmethod
    def check(self) -> Iterator[Violation]:
        """What must hold of all that was seen."""
