"""From measurements to tables: medians, CPU for each message, and the ratio to the others in the last column.

Logs are compared with Kafka, queues with the best of the brokers that have queues, the gateway with the best
of those that speak SQS. The ratio is the median
of the ratios of each round: both sides of it were measured within the same seconds, which the medians of
the columns were not. So it may differ a little from what the columns would give.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median

from benchmarks.results import ModeResults, number
from benchmarks.session import Measurement
from benchmarks.workload import Part, Row, Workload
from benchmarks.workloads import WORKLOADS

_NONE = "–"


def render(outcomes: Sequence[ModeResults], rounds: int) -> str:
    """The whole report in Markdown, which reads as well on a terminal."""
    parts = ["# Benchmarks", _introduction(rounds), "## Machine and versions", _machine(outcomes)]
    for outcome in outcomes:
        parts.append(f"## {_TITLES[outcome.mode.name]}")
        for part in Part:
            parts += _part(outcome, part)
        parts += ["The servers themselves:", _facts_table(outcome)]
        parts += [f"{name} is left out here: {why}." for name, why in outcome.left_out.items()]
    return "\n\n".join(parts) + "\n"


def to_json(outcomes: Sequence[ModeResults], rounds: int) -> str:
    """Every single measurement, for other tools."""
    document = {
        "date": date.today().isoformat(),
        "rounds": rounds,
        "machine": dict(machine_facts()),
        "modes": [{**asdict(outcome), "mode": outcome.mode.name.lower()} for outcome in outcomes],
    }
    return json.dumps(document, indent=2) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are aligned, the first to the left and the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    shown = [
        "| " + " | ".join(_aligned(cell, i, widths[i]) for i, cell in enumerate(line)) + " |"
        for line in lines
    ]
    rule = (
        "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    )
    return "\n".join([shown[0], rule, *shown[1:]])


_TITLES = {
    "PAGE_CACHE": "Acknowledged from the page cache",
    "SYNCED": "Synced to disk before it is acknowledged",
}


def _introduction(rounds: int) -> str:
    return (
        f"Written by `make bench` on {date.today():%d %B %Y}: medians of {rounds} alternating rounds, "
        "client and server on the same cores, acks=all. The ratio is Postroad to Kafka, for queues to the "
        "best of NATS and RabbitMQ, for the gateway to the best of moto and ElasticMQ, the median over the "
        "rounds; in brackets the goal, ✓ if it was reached. Absolute figures belong to this machine, ratios "
        "travel better. How to read and repeat them: `benchmarks/README.md`."
    )


_HEADINGS = {
    Part.LOGS: "### Logs",
    Part.TRANSACTIONS: "### Transactions",
    Part.QUEUES: "### Queues: publish, take and acknowledge at the same time",
    Part.GATEWAY: "### Gateway: SQS over HTTP, and push over WebSockets",
    Part.CLUSTER: "### Cluster: three nodes, three replicas, at least two in sync",
    Part.FAILOVER: "### Failover: the same cluster, one node killed and started again in each round",
    Part.TWO_NODES: "### Two nodes beside one, one replica",
    Part.TLS: "### TLS on both sides",
    Part.TLS_PRICE: "### What TLS costs: the same node with TLS and without",
    Part.RIGHTS: "### What rights cost: a user with ACLs beside a node that asks nobody, both without TLS",
}
_RATIOS = {
    Part.LOGS: "postroad : kafka",
    Part.TRANSACTIONS: "postroad : kafka",
    Part.QUEUES: "postroad : best of nats, rabbitmq",
    Part.GATEWAY: "postroad : best of moto, elasticmq",
    Part.CLUSTER: "postroad : kafka",
    Part.FAILOVER: "postroad : kafka",
    Part.TWO_NODES: "two : one",
    Part.TLS: "postroad : kafka",
    Part.TLS_PRICE: "TLS : plain",
    Part.RIGHTS: "rights : none",
}


def _part(outcome: ModeResults, part: Part) -> list[str]:
    """The part's tables; nothing if nothing of it was measured."""
    workloads = [workload for workload in WORKLOADS if workload.part is part]
    measured = [workload for workload in workloads if outcome.results.get(workload.key)]
    if not measured:
        return []
    names = [name for name in outcome.servers if any(name in outcome.results[w.key] for w in measured)]
    header = [*names, _RATIOS[part]]
    speed = [line for workload in measured for line in _speed_lines(outcome, workload, names)]
    cpu = [line for workload in measured for line in _cpu_lines(outcome, workload, names)]
    tables = [_HEADINGS[part], table(["work", *header], speed)]
    if cpu:
        tables += [
            "Server CPU, µs for each message (all threads; median):",
            table(["workload", *header], cpu),
        ]
    return tables


def _speed_lines(outcome: ModeResults, workload: Workload, names: Sequence[str]) -> Iterable[list[str]]:
    for index, row in enumerate(workload.rows):
        values = {
            name: {turn: m.values[index] for turn, m in rounds.items()}
            for name, rounds in outcome.results[workload.key].items()
        }
        yield [f"{row.title}, {row.unit}", *_cells(row, workload.part, names, values)]


def _cpu_lines(outcome: ModeResults, workload: Workload, names: Sequence[str]) -> Iterable[list[str]]:
    values = {
        name: {turn: _cpu_us(m) for turn, m in rounds.items() if m.cpu_seconds}
        for name, rounds in outcome.results[workload.key].items()
    }
    if any(values.values()):  # a workload may be about something else
        row = Row(workload.key, "µs", more_is_better=False)
        yield [row.title, *_cells(row, workload.part, names, values)]


def _cells(
    row: Row, part: Part, names: Sequence[str], values: Mapping[str, Mapping[int, float]]
) -> list[str]:
    """The median of each server's rounds, then the ratio."""
    medians = [number(median(values[name].values())) if values.get(name) else _NONE for name in names]
    ours = values.get(part.ours, {})
    others = [values[name] for name in part.against if name in values]
    return [*medians, _verdict(row, ours, _best(row, others))]


def _best(row: Row, others: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The best figure of each round."""
    choose = max if row.more_is_better else min
    turns = {turn for values in others for turn in values}
    return {turn: choose(values[turn] for values in others if turn in values) for turn in sorted(turns)}


def _facts_table(outcome: ModeResults) -> str:
    rows = [
        [
            f"{name} {facts.version}",
            f"{facts.ready_seconds:.2f}",
            f"{facts.idle_mb:,.0f}",
            f"{facts.end_mb:,.0f}",
        ]
        for name, facts in outcome.servers.items()
    ]
    return table(["server", "ready after, s", "memory at the start, MB", "at the end, MB"], rows)


def _machine(outcomes: Sequence[ModeResults]) -> str:
    facts = list(machine_facts())
    versions = {name: facts.version for outcome in outcomes for name, facts in outcome.servers.items()}
    facts.append(("servers", ", ".join(f"{name} {version}" for name, version in versions.items())))
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def machine_facts() -> Iterable[tuple[str, str]]:
    """What the figures depend on, and nothing that names this machine or its owner."""
    yield "CPU", f"{_first('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores"
    memory_kb = _first("/proc/meminfo", "MemTotal").split()[0]
    yield "memory", f"{int(memory_kb) / 1e6:.0f} GB" if memory_kb.isdigit() else "unknown"
    yield "system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"


def _first(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "unknown")


def _verdict(row: Row, ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
    """Like `1.93× (≥ 1.5 ✓)`, over the rounds that both sides finished; like `0.93 (≥ 0.8 ✓)` for a goal that
    needs no other broker."""
    ratios = [ours[turn] / theirs[turn] for turn in ours if theirs.get(turn)]
    parts: list[str] = []
    if ratios and (row.goal is not None or row.own_goal is None):
        parts.append(f"{median(ratios):.2f}×{_goal(row, row.goal, median(ratios))}")
    if ours and row.own_goal is not None:
        own = median(ours.values())
        parts.append(f"{number(own)}{_goal(row, row.own_goal, own)}")
    return ", ".join(parts) or _NONE


def _goal(row: Row, goal: float | None, reached: float) -> str:
    if goal is None:
        return ""
    good = reached >= goal if row.more_is_better else reached <= goal
    return f" ({'≥' if row.more_is_better else '≤'} {_goal_number(goal)} {'✓' if good else '✗'})"


def _goal_number(goal: float) -> str:
    return f"{goal:,.0f}" if goal >= 100 else f"{goal:.2g}"


def _cpu_us(measurement: Measurement) -> float:
    return measurement.cpu_seconds / measurement.messages * 1e6 if measurement.messages else 0.0


def _aligned(cell: str, column: int, width: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)
