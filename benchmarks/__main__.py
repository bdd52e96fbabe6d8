"""`make bench ARGS="…"`: compares Postroad with other brokers, or with another commit of itself."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import against, cache, report
from benchmarks.peers import OURS, PEERS
from benchmarks.runner import run_mode
from benchmarks.servers import Mode, Server
from benchmarks.session import Limits
from benchmarks.workload import Part, Workload
from benchmarks.workloads import WORKLOADS

_MODES = {"page-cache": Mode.PAGE_CACHE, "synced": Mode.SYNCED}
_PARTS = [part.word for part in Part]
_LOGS = Part.LOGS.word
_QUICK_ROUNDS, _QUICK_LIMITS = 2, Limits(scale=0.3, seconds=1.5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for and prints the tables; 1 if nothing could be measured."""
    options = _parse(arguments)
    limits = _QUICK_LIMITS if options.quick else Limits()
    rounds = options.rounds or (_QUICK_ROUNDS if options.quick else 5)
    modes = options.mode or (["page-cache"] if options.quick else list(_MODES))
    is_short = options.quick or options.against
    workloads = chosen(options.only or ([_LOGS] if options.against else _PARTS), quick=is_short)
    data = Path(options.data) if options.data else cache.directory("bench-data")
    try:
        peers = _servers(options)
    except cache.Missing as problem:
        print(problem, file=sys.stderr)
        return 1
    outcomes = [
        run_mode(_MODES[mode], peers, workloads, rounds, limits, data / f"run-{os.getpid()}")
        for mode in modes
    ]
    if not any(outcome.results for outcome in outcomes):
        print("Nothing could be measured; see above.", file=sys.stderr)
        return 1
    if options.against:
        text = against.render(outcomes, workloads, options.against)
    else:
        text = report.render(outcomes, rounds)
    print(text)
    for target in options.write:
        content = report.to_json(outcomes, rounds) if target.suffix == ".json" else text
        target.write_text(content)
    return 0


def chosen(words: Sequence[str], *, quick: bool) -> list[Workload]:
    """Workloads by their keys or by the names of their parts; a quick look takes long ones by key only."""
    return [
        workload
        for workload in WORKLOADS
        if workload.key in words or (workload.part.word in words and not (quick and workload.long))
    ]


def _servers(options: argparse.Namespace) -> dict[str, type[Server]]:
    """What is measured, by name. Raises Missing."""
    if not options.against:
        return {name: PEERS[name] for name in options.peers}
    return against.variants({against.HERE: against.ROOT, options.against: against.checkout(options.against)})


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__, allow_abbrev=False)
    keys = ", ".join(workload.key for workload in WORKLOADS)
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds after the warm-up (5)")
    parser.add_argument(
        "--only",
        type=_workloads,
        metavar="W,…",
        help=f"only these parts ({', '.join(_PARTS)}) or workloads: {keys}",
    )
    parser.add_argument(
        "--peers",
        type=_peers,
        default=list(PEERS),
        metavar="P,…",
        help=f"compare with these: {', '.join(PEERS)} (all)",
    )
    parser.add_argument(
        "--against",
        metavar="REF",
        help="compare with another commit of this repository instead of other brokers (logs, if --only says "
        "nothing else)",
    )
    parser.add_argument("--mode", type=_modes, metavar="M,…", help="page-cache, synced (both)")
    parser.add_argument(
        "--quick", action="store_true", help="two short rounds, page cache only: a first look in 10 minutes"
    )
    parser.add_argument(
        "--write",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also write FILE (.md or .json)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="where the servers keep their data (your cache directory)"
    )
    return parser.parse_args(arguments)


def _workloads(text: str) -> list[str]:
    return _among(text, [*_PARTS, *(workload.key for workload in WORKLOADS)])


def _peers(text: str) -> list[str]:
    """Postroad is always there: it is what the others are compared with."""
    return list(dict.fromkeys([*OURS, *_among(text, list(PEERS))]))


def _modes(text: str) -> list[str]:
    return _among(text, list(_MODES))


def _among(text: str, known: Sequence[str]) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(known)}")
    return words


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that the servers are stopped
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
