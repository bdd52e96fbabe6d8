"""This tree beside another commit of the repository: has a change made anything slower?

Both run on the same interpreter and packages; only `src` differs, by PYTHONPATH. The other commit lies in a
git worktree in the cache directory. They take turns as other brokers do: what is compared was measured within
the same seconds. Processor time is steadier than wall time on a machine that others use, too.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks import cache
from benchmarks.peers import OURS, PEERS
from benchmarks.report import table
from benchmarks.results import ModeResults, number
from benchmarks.servers import Server
from benchmarks.session import Measurement
from benchmarks.workload import Row, Workload

ROOT = Path(__file__).resolve().parent.parent
HERE = "here"


def checkout(ref: str, repository: Path = ROOT) -> Path:
    """A work tree of the commit, made once. Raises Missing if there is no such commit."""
    commit = _git(repository, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if not commit:
        raise cache.Missing(f"{ref!r} names no commit of this repository")
    tree = cache.directory("bench-trees") / commit[:12]
    if not (tree / "src").is_dir():
        _git(repository, "worktree", "prune")
        _git(repository, "worktree", "add", "--detach", "--force", str(tree), commit)
    if not (tree / "src").is_dir():
        raise cache.Missing(f"{ref!r} could not be checked out\n({tree})")
    return tree


def variants(trees: Mapping[str, Path]) -> dict[str, type[Server]]:
    """Each of our servers, once for each tree; `trees` by the names that reports have for them."""
    return {
        f"{name}@{label}": type(
            PEERS[name].__name__,
            (PEERS[name],),
            {"name": f"{name}@{label}", "measured_as": name, "tree": tree},
        )
        for name in OURS
        for label, tree in trees.items()
    }


def render(outcomes: Sequence[ModeResults], workloads: Sequence[Workload], ref: str) -> str:
    """A table for each mode: the medians of both, and the ratio of this tree to the other."""
    parts = []
    for outcome in outcomes:
        lines = [line for workload in workloads for line in _lines(outcome, workload, ref)]
        header = ["work", HERE, ref, f"{HERE} : {ref}", "median of the rounds", "CPU for a message"]
        parts += [f"## {outcome.mode.value}", table(header, lines)]
        parts += [f"{name} is left out here: {why}." for name, why in outcome.left_out.items()]
    return "\n\n".join(parts) + "\n"


def _lines(outcome: ModeResults, workload: Workload, ref: str) -> Iterator[list[str]]:
    results = outcome.results.get(workload.key, {})
    for name in OURS:
        ours, theirs = results.get(f"{name}@{HERE}", {}), results.get(f"{name}@{ref}", {})
        turns = sorted(ours.keys() & theirs.keys())
        if turns:
            pairs = [(ours[turn], theirs[turn]) for turn in turns]
            for index, row in enumerate(workload.rows):
                yield [f"{name}: {_title(workload, row)}", *_cells(pairs, index)]


def _title(workload: Workload, row: Row) -> str:
    return f"{workload.key}: {row.title}, {row.unit}"


def _cells(pairs: Sequence[tuple[Measurement, Measurement]], index: int) -> list[str]:
    ours, theirs = ([pair[side].values[index] for pair in pairs] for side in (0, 1))
    cpu = [(_cpu(a), _cpu(b)) for a, b in pairs if _cpu(a) and _cpu(b)]
    return [
        number(median(ours)),
        number(median(theirs)),
        f"{median(ours) / median(theirs):.2f}" if median(theirs) else "–",
        _by_rounds(list(zip(ours, theirs, strict=True))),
        _by_rounds(cpu),
    ]


def _by_rounds(pairs: Sequence[tuple[float, float]]) -> str:
    ratios = [a / b for a, b in pairs if b]
    return f"{median(ratios):.2f}" if ratios else "–"


def _cpu(measurement: Measurement) -> float:
    return measurement.cpu_seconds / measurement.messages if measurement.messages else 0.0


def _git(repository: Path, *arguments: str) -> str:
    """What git prints; nothing where it fails."""
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if not done.returncode else ""
