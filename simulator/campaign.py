"""Many seeds, side by side over the cores, each in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from simulator import sometimes
from simulator.faults import KINDS, Fault
from simulator.mutants import MUTANTS
from simulator.scenario import Result, Scenario
from simulator.workloads import ALL, names_for


@dataclass(frozen=True)
class Campaign:
    seconds: float = 60.0
    nodes: int = 1
    kinds: Collection[str] = tuple(KINDS)
    workloads: Collection[str] = names_for(1)
    mutant: str | None = None

    @property
    def is_whole(self) -> bool:
        """Nothing was left out, so that everything must be reached."""
        wanted = names_for(self.nodes)
        return len(self.kinds) == len(KINDS) and set(self.workloads) >= set(wanted) and self.mutant is None


def play(
    campaign: Campaign, seed: int, plan: Sequence[Fault] | None = None, trace: Path | None = None
) -> Result:
    """One seed, in this process. A mutant stays for as long as the process lives."""
    if campaign.mutant is not None:
        MUTANTS[campaign.mutant].apply()
    workloads = [kind for name, kind in ALL.items() if name in campaign.workloads]
    scenario = Scenario(
        seed,
        workloads,
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
    forked = multiprocessing.get_context("fork")  # what is imported is there at once
    with forked.Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(partial(_play_item, campaign), seeds)


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
