"""The comparison on Spark as tables: medians, and ratios that are medians of the rounds' ratios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from statistics import median

from benchmarks.report import machine_facts, table
from benchmarks.results import number
from benchmarks.spark_cases import CASES, Case, Figure, Goal, Side
from benchmarks.spark_lab import Measured

_NONE = "–"


@dataclass
class Outcome:
    """`results[case key][side][round]`."""

    rounds: int
    versions: str
    load: str  # of the machine when it began: figures of a busy one mean little
    notes: list[str] = field(default_factory=list)  # what is not as it should be
    results: dict[str, dict[Side, dict[int, Measured]]] = field(default_factory=dict)


def render(outcome: Outcome) -> str:
    """The whole report in Markdown, which reads as well on a terminal."""
    facts = [*machine_facts(), ("versions", outcome.versions), ("load when it began", outcome.load)]
    parts = [
        "# Benchmarks: Spark",
        f"Written by `make bench-spark` on {date.today():%d %B %Y}: medians of {outcome.rounds} alternating "
        "rounds, local[2], broker and Spark on the same cores. *Kafka connector* is Spark's own for the JVM, "
        "from the same broker; *Spark's own* is a scan of Parquet files with the same rows, the Parquet file "
        "sink for the archive (Delta), and the source rate-micro-batch for the trigger; *otherwise* is the "
        "same work in another way, as the row's name says. Ratios: how many times faster than the other "
        "Postroad is; for the trigger, how many times as long it takes. In "
        "brackets the goals, ✓ if reached.",
        *(f"**{note}**" for note in outcome.notes),
        "\n".join(f"- {name}: {value}" for name, value in facts),
        "## Time",
        _table(outcome, Figure.TIME),
        "## CPU: the JVM, its Python workers and the driver, without the broker",
        _table(outcome, Figure.CPU),
    ]
    return "\n\n".join(parts) + "\n"


def to_json(outcome: Outcome) -> str:
    """Every single measurement, for other tools."""
    results = {
        key: {
            side.value: {turn: asdict(measured) for turn, measured in rounds.items()}
            for side, rounds in sides.items()
        }
        for key, sides in outcome.results.items()
    }
    machine = dict(machine_facts())
    document = {**asdict(outcome), "date": date.today().isoformat(), "machine": machine, "results": results}
    return json.dumps(document, indent=2) + "\n"


def shown(case: Case, figure: Figure, measured: Measured) -> float:
    """As people want to see it: thousands of rows a second, µs of CPU for a row, ms for a trigger."""
    seconds = measured.seconds if figure is Figure.TIME else measured.cpu_seconds
    if case.is_overhead:
        return seconds / measured.count * 1e3
    if figure is Figure.TIME:
        return measured.count / seconds / 1e3
    return seconds / measured.count * 1e6


def _table(outcome: Outcome, figure: Figure) -> str:
    others = [side for side in Side if side is not Side.OURS]
    header = ["work", *(side.value for side in Side), *(f": {side.value}" for side in others)]
    return table(header, (_line(outcome, case, figure) for case in CASES if outcome.results.get(case.key)))


def _line(outcome: Outcome, case: Case, figure: Figure) -> list[str]:
    sides = outcome.results[case.key]
    medians = [_median(case, figure, sides.get(side, {})) for side in Side]
    verdicts = [_verdict(case, figure, sides, side) for side in Side if side is not Side.OURS]
    return [f"{case.title}, {_unit(case, figure)}", *medians, *verdicts]


def _unit(case: Case, figure: Figure) -> str:
    if case.is_overhead:
        return "ms"
    return "1,000 rows/s" if figure is Figure.TIME else "µs/row"


def _median(case: Case, figure: Figure, rounds: Mapping[int, Measured]) -> str:
    return number(median(shown(case, figure, each) for each in rounds.values())) if rounds else _NONE


def _verdict(case: Case, figure: Figure, sides: Mapping[Side, Mapping[int, Measured]], against: Side) -> str:
    """Like `1.53× (≥ 1 ✓, ≥ 1.5 ✓)`, over the rounds that both sides finished."""
    ours, theirs = sides.get(Side.OURS, {}), sides.get(against, {})
    ratios = [_ratio(case, figure, ours[turn], theirs[turn]) for turn in ours if turn in theirs]
    if not ratios:
        return _NONE
    goals = [goal for goal in case.goals if (goal.against, goal.figure) == (against, figure)]
    return f"{median(ratios):.2f}×{_goals(goals, median(ratios))}"


def _ratio(case: Case, figure: Figure, ours: Measured, theirs: Measured) -> float:
    mine, others = (each.seconds if figure is Figure.TIME else each.cpu_seconds for each in (ours, theirs))
    return mine / others if case.is_overhead else others / mine


def _goals(goals: Sequence[Goal], reached: float) -> str:
    return f" ({', '.join(_marks(goals, reached))})" if goals else ""


def _marks(goals: Iterable[Goal], reached: float) -> Iterable[str]:
    for goal in goals:
        is_reached = reached <= goal.bound if goal.is_overhead else reached >= goal.bound
        yield f"{'≤' if goal.is_overhead else '≥'} {goal.bound:.2g} {'✓' if is_reached else '✗'}"
