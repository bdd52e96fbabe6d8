"""`make bench-spark ARGS="…"`: Postroad's data source compared with Spark's Kafka connector and files."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks import cache, spark_connector, spark_report
from benchmarks.results import number
from benchmarks.spark_cases import CASES, ROWS, Case, Figure, Side
from benchmarks.spark_connector import Connector
from benchmarks.spark_lab import Lab, lab
from benchmarks.spark_report import Outcome

ROUNDS, QUICK_ROUNDS, QUICK_SCALE = 7, 2, 0.1


class DifferentRows(Exception):
    """Two sides did not read the same: then their times can't be compared."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for and prints the tables."""
    options = _parse(arguments)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    outcome = Outcome(rounds, "", " / ".join(f"{load:.1f}" for load in os.getloadavg()))
    connector = None if options.no_jvm else _connector(outcome)
    data = Path(options.data) if options.data else cache.directory("bench-data")
    cases = [case for case in CASES if not options.only or case.key in options.only]
    with lab(data / f"spark-{os.getpid()}", connector) as where:
        outcome.versions = _versions(where, connector)
        scale = QUICK_SCALE if options.quick else 1.0
        _prepare(where, cases, scale, with_jvm=connector is not None)
        for turn in range(rounds + 1):  # the first warms up
            _round(where, cases, scale, turn, outcome, with_jvm=connector is not None)
    text = spark_report.render(outcome)
    print(text)
    for target in options.write:
        target.write_text(spark_report.to_json(outcome) if target.suffix == ".json" else text)
    return 0


def _connector(outcome: Outcome) -> Connector | None:
    try:
        connector = spark_connector.find()
    except cache.Missing as missing:
        _say(str(missing))
        reason = str(missing).splitlines()[0].rstrip(":.")
        outcome.notes.append(f"Spark's Kafka connector is left out here: {reason}.")
        return None
    if connector.note:
        outcome.notes.append(connector.note)
        _say(connector.note)
    return connector


def _versions(where: Lab, connector: Connector | None) -> str:
    named = {"Spark": where.spark.version, "Postroad": version("postroad"), "pyarrow": version("pyarrow")}
    if connector is not None:
        named["Kafka connector"] = connector.release.spark
        named["its token provider"] = connector.release.tokens
        named["spark-avro"] = connector.release.avro
    return ", ".join(f"{name} {value}" for name, value in named.items())


def _prepare(where: Lab, cases: Sequence[Case], scale: float, *, with_jvm: bool) -> None:
    """Topics and files, and a look whether all sides read the same rows. Raises DifferentRows."""
    sizes = {case.size for case in cases if case.size}
    for size in sorted(sizes):
        _say(f"writing rows of {size} bytes …")
        where.fill(size, int(ROWS[size] * scale))
        frames = {"files": where.files(size), "postroad": where.topic(size, "postroad")}
        if with_jvm:
            frames["kafka"] = where.topic(size, "kafka")
        found = {name: where.fingerprint(frame) for name, frame in frames.items()}
        if len(set(found.values())) != 1:
            raise DifferentRows(f"rows of {size} bytes (count, two hashes): {found}")


def _round(
    where: Lab, cases: Sequence[Case], scale: float, turn: int, outcome: Outcome, *, with_jvm: bool
) -> None:
    """Each case visits its sides one after the other; their order turns round from round to round."""
    for case in cases:
        sides = [side for side in case.sides if with_jvm or side is not Side.JVM]
        said = []
        for side in sides if turn % 2 else sides[::-1]:
            measured = case.sides[side](where, case.rows_of(scale))
            said.append(f"{side.value} {number(spark_report.shown(case, Figure.TIME, measured))}")
            if turn:
                outcome.results.setdefault(case.key, {}).setdefault(side, {})[turn] = measured
        title = f"round {turn} of {outcome.rounds}" if turn else "warm-up"
        _say(f"{title}: {case.key}: {' · '.join(said)}")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-spark", description=__doc__, allow_abbrev=False)
    keys = [case.key for case in CASES]
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds after the warm-up ({ROUNDS})")
    parser.add_argument(
        "--only", action="append", choices=keys, metavar="CASE", help=f"may be repeated: {', '.join(keys)}"
    )
    parser.add_argument("--quick", action="store_true", help="two rounds with a tenth of the rows")
    parser.add_argument(
        "--no-jvm", action="store_true", help="without Spark's Kafka connector, on the installed Spark"
    )
    parser.add_argument(
        "--write",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also write FILE (.md or .json)",
    )
    parser.add_argument("--data", metavar="DIR", help="where topics and files lie (your cache directory)")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that the broker is stopped
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
