"""Many seeds, side by side over the cores, each in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import ForkServerContext
from pathlib import Path
from random import Random
from typing import Final

from simulator import sometimes
from simulator.faults import KINDS, Fault
from simulator.mutants import MUTANTS
from simulator.scenario import Result, Scenario
from simulator.workloads import ALL, names_for
from simulator.workloads.workload import Workload

DRAWN: Final = 2  # workloads of a seed, in the mean


@dataclass(frozen=True)
class Campaign:
    seconds: float = 60.0
    nodes: int = 1
    kinds: Collection[str] = tuple(KINDS)
    workloads: Collection[str] | None = None  # None: each seed draws some
    mutant: str | None = None

    @property
    def is_whole(self) -> bool:
        """Nothing was left out, so that everything must be reached."""
        return len(self.kinds) == len(KINDS) and self.workloads is None and self.mutant is None

    def workloads_of(self, seed: int) -> list[type[Workload]]:
        """Some of them at a time: in the same time more orders of events are met than with all together."""
        if self.workloads is not None:
            return [kind for name, kind in ALL.items() if name in self.workloads]
        random, names = Random(f"{seed} workloads"), names_for(self.nodes)
        chance = DRAWN / len(names)
        drawn = [name for name in names if random.random() < chance] or [random.choice(names)]
        return [ALL[name] for name in drawn]


def play(
    campaign: Campaign, seed: int, plan: Sequence[Fault] | None = None, trace: Path | None = None
) -> Result:
    """One seed, in this process. A mutant stays for as long as the process lives."""
    if campaign.mutant is not None:
        MUTANTS[campaign.mutant].apply()
    scenario = Scenario(
        seed,
        campaign.workloads_of(seed),
        seconds=campaign.seconds,
        nodes=campaign.nodes,
        kinds=campaign.kinds,
        plan=plan,
        trace=trace,
    )
    return scenario.run()


def play_apart(campaign: Campaign, seed: int, plan: Sequence[Fault] | None = None) -> Result:
    """One seed in a process of its own: nothing of it is left behind."""
    return next(play_all(campaign, [(seed, plan)], 1))


def play_all(
    campaign: Campaign, seeds: Sequence[tuple[int, Sequence[Fault] | None]], processes: int
) -> Generator[Result, None, None]:
    """Results as they come. Whoever has seen enough closes the iterator."""
    with _forked_apart().Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(partial(_play_item, campaign), seeds)


def _forked_apart() -> ForkServerContext:
    """Forks of a process that has imported the simulator and does nothing else.

    A fork of this process would share its sockets and clear away the locals of its other threads: that cuts
    the connection of a Spark session which is open here.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["simulator.campaign"])
    return context


def _play_item(campaign: Campaign, item: tuple[int, Sequence[Fault] | None]) -> Result:
    return play(campaign, *item)


class Tally:
    """What a run of seeds has shown so far."""

    def __init__(self) -> None:
        self.results = 0
        self.failed: list[Result] = []
        self.cpu_s = 0.0
        self.virtual_s = 0.0
        self.seen: Counter[str] = Counter()

    def add(self, result: Result) -> None:
        self.results += 1
        self.cpu_s += result.cpu_s
        self.virtual_s += result.virtual_s
        self.seen.update(result.sometimes)
        if result.violations:
            self.failed.append(result)

    def missing(self, campaign: Campaign) -> list[str]:
        """Events that a run of this size should have reached, and has not."""
        if not campaign.is_whole or self.results < sometimes.SEEDS_MIN:
            return []
        return sometimes.missing(self.seen, campaign.nodes)
