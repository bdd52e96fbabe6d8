"""`python -m simulator`: run seeds, and say which ones break a promise."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from simulator import sometimes
from simulator.campaign import Campaign, Tally, play, play_all
from simulator.faults import KINDS
from simulator.mutants import MUTANTS
from simulator.scenario import Result
from simulator.shrink import shrink
from simulator.workloads import ALL

FAILURES_MAX = 10  # then a run has shown enough


def _names(known: Sequence[str]) -> click.ParamType[tuple[str, ...]]:
    class Names(click.ParamType[tuple[str, ...]]):
        name = "names"

        def convert(
            self, value: str, param: click.Parameter | None, ctx: click.Context | None
        ) -> tuple[str, ...]:
            names = tuple(part.strip() for part in value.split(",")) if value else ()
            for name in names:
                if name not in known:
                    self.fail(f"there is no {name!r}; there are {', '.join(known)}", param, ctx)
            return names

    return Names()


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--seeds", default=100, type=click.IntRange(1), help="How many seeds to run.")
@click.option("--first", default=1, type=click.IntRange(0), help="The first of them.")
@click.option("--seconds", default=60.0, type=click.FloatRange(3.0), help="Virtual time with faults.")
@click.option("--nodes", default=1, type=click.IntRange(1, 9), help="Nodes of the cluster.")
@click.option("--faults", default=",".join(KINDS), type=_names(tuple(KINDS)), help="Kinds of faults.")
@click.option(
    "--workloads",
    type=_names(tuple(ALL)),
    show_default="each seed draws some of those that can do with so many nodes",
    help="What clients do; some need one node.",
)
@click.option("--mutant", type=click.Choice(sorted(MUTANTS)), help="A fault to put into the code.")
@click.option("--seed", type=click.IntRange(0), help="Replay this one, and say all that it breaks.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write all that happened to this file.")
@click.option("--shrink", "shrinks", is_flag=True, help="Find the fewest faults with which the seed fails.")
@click.option("--events", "tells_events", is_flag=True, help="Say how often each event was reached.")
@click.option("--processes", default=os.cpu_count() or 1, type=click.IntRange(1), help="Seeds side by side.")
def main(
    seeds: int,
    first: int,
    seconds: float,
    nodes: int,
    faults: tuple[str, ...],
    workloads: tuple[str, ...] | None,
    mutant: str | None,
    seed: int | None,
    trace: Path | None,
    shrinks: bool,
    tells_events: bool,
    processes: int,
) -> None:
    """Run the real broker on virtual time, with clients and with faults, and check what it promises."""
    campaign = Campaign(seconds, nodes, faults, _workloads(workloads, nodes), mutant)
    if seed is not None:
        sys.exit(_replay(campaign, seed, trace, shrinks))
    tally = _run(campaign, range(first, first + seeds), processes)
    if tells_events:
        _tell_events(campaign, tally)
    sys.exit(_summary(campaign, tally))


def _workloads(wanted: tuple[str, ...] | None, nodes: int) -> tuple[str, ...] | None:
    for name in wanted or ():
        if nodes > 1 and not ALL[name].many_nodes:
            raise click.UsageError(f"Workload {name!r} needs one node: leave out --nodes {nodes}.")
    return wanted


def _run(campaign: Campaign, seeds: Sequence[int], processes: int) -> Tally:
    tally, console = Tally(), Console(stderr=True)
    columns = TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("seeds", total=len(seeds))
        with closing(play_all(campaign, [(seed, None) for seed in seeds], processes)) as results:
            for result in results:
                tally.add(result)
                progress.advance(task)
                if result.violations:
                    progress.console.print(Text(_line(campaign, result)), soft_wrap=True)
                if len(tally.failed) >= FAILURES_MAX or (tally.failed and campaign.mutant):
                    break
    return tally


def _replay(campaign: Campaign, seed: int, trace: Path | None, shrinks: bool) -> int:
    result = play(campaign, seed, trace=trace)
    for violation in result.violations:
        print(violation)
    print(f"seed {seed}: trace {result.digest}, {result.virtual_s:.0f} virtual s in {result.cpu_s:.2f} CPU s")
    if shrinks and result.violations:
        least = shrink(campaign, result)
        print(f"{len(least.plan)} of {len(result.plan)} faults are enough:")
        for fault in least.plan:
            print(f"  {fault}")
    sys.stdout.flush()
    os._exit(1 if result.violations else 0)  # threads of processes that died in the scenario never end


def _line(campaign: Campaign, result: Result) -> str:
    more = f" (and {len(result.violations) - 1} more)" if len(result.violations) > 1 else ""
    replay = _replay_command(campaign, result.seed)
    return f"seed {result.seed}: {result.violations[0]}{more}; replay: {replay}"


def _replay_command(campaign: Campaign, seed: int) -> str:
    options = [f"--seed {seed}"]
    plain = Campaign()
    if campaign.seconds != plain.seconds:
        options.append(f"--seconds {campaign.seconds:g}")
    if campaign.nodes != plain.nodes:
        options.append(f"--nodes {campaign.nodes}")
    if tuple(campaign.kinds) != tuple(plain.kinds):
        options.append(f"--faults {','.join(campaign.kinds)}")
    if campaign.workloads is not None:
        options.append(f"--workloads {','.join(campaign.workloads)}")
    if campaign.mutant is not None:
        options.append(f"--mutant {campaign.mutant}")
    return f'make simulate ARGS="{" ".join(options)}"'


def _tell_events(campaign: Campaign, tally: Tally) -> None:
    for event in sorted({*sometimes.wanted(campaign.nodes), *tally.seen}):
        print(f"reached {tally.seen[event]:>7}: {event}")


def _summary(campaign: Campaign, tally: Tally) -> int:
    rate = tally.virtual_s / tally.cpu_s if tally.cpu_s else 0.0
    print(
        f"{tally.results} seeds, {len(tally.failed)} failed; "
        f"{tally.virtual_s:.0f} virtual s in {tally.cpu_s:.0f} CPU s ({rate:.0f} for each)"
    )
    missing = tally.missing(campaign)
    for event in missing:
        print(f"never reached: {event}")
    return int(bool(tally.failed or missing))


if __name__ == "__main__":
    main()
