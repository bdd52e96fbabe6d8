"""`make bench-workers`: empty background jobs, by `import postroad` and by what others use, side by side.

Each framework has its own broker, in its usual configuration, one worker process, and jobs that note the
time and do nothing else (`jobs/`). First so many jobs are published, then the worker is started: the rate is
from its first job to its last. Then it waits, and jobs are published one after the other: how long each was
on its way.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import cache
from benchmarks.process import Process, ServerFailed
from benchmarks.servers import Mode, Postroad, RabbitMQ, Redis, Server

JOBS: Final = Path(__file__).parent / "jobs"
INSTALL_SECONDS_MAX: Final = 600
SECONDS_MAX: Final = 120.0
PACED_JOBS: Final = 500


class Framework(NamedTuple):
    name: str
    server: type[Server]
    url: str  # with the port left open
    program: str
    work: Callable[[str], list[str]]  # the command of the worker, given the interpreter
    jobs: int
    requirements: tuple[str, ...] = ()  # of an environment of its own; they don't go together

    @property
    def is_ours(self) -> bool:
        return self.server is Postroad


FRAMEWORKS: Final = (
    Framework(
        "postroad",
        Postroad,
        "127.0.0.1:{}",
        "postroad_jobs",
        lambda python: [python, "-m", "postroad", "worker", "postroad_jobs", "--log-level", "error"],
        200_000,
    ),
    Framework(
        "Celery + Redis",
        Redis,
        "redis://127.0.0.1:{}/0",
        "celery_jobs",
        lambda python: [python, "-m", "celery_jobs", "work"],
        5_000,
        ("celery[redis]==5.7.0",),
    ),
    Framework(
        "dramatiq + RabbitMQ",
        RabbitMQ,
        "amqp://guest:guest@127.0.0.1:{}",
        "dramatiq_jobs",
        lambda python: [python, "-m", "dramatiq", "--processes", "1", "--threads", "8", "dramatiq_jobs"],
        10_000,
        ("dramatiq[rabbitmq]==2.2.1",),
    ),
    Framework(
        "ARQ + Redis",
        Redis,
        "redis://127.0.0.1:{}/0",
        "arq_jobs",
        lambda python: [python, "-m", "arq", "arq_jobs.WorkerSettings"],
        5_000,
        ("arq==0.28.0",),
    ),
    Framework(
        "taskiq + Redis",
        Redis,
        "redis://127.0.0.1:{}/0",
        "taskiq_jobs",
        lambda python: [python, "-m", "taskiq", "worker", "--workers", "1", "taskiq_jobs:broker"],
        10_000,
        (
            "taskiq==0.13.0",
            "taskiq-redis==1.2.4",
        ),
    ),
)


class Figures(NamedTuple):
    published: float  # jobs a second
    done: float  # jobs a second
    p50_ms: float
    p99_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make bench-workers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--only", metavar="WORD", default="", help="frameworks with this word in their names")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="X times as many jobs")
    parser.add_argument("--mode", choices=["page-cache", "synced"], default="page-cache")
    options = parser.parse_args(arguments)
    chosen = [each for each in FRAMEWORKS if options.only.lower() in each.name.lower()]
    mode = Mode.SYNCED if options.mode == "synced" else Mode.PAGE_CACHE
    found: dict[str, list[Figures]] = {}
    for number in range(options.rounds):
        for framework in chosen:
            try:
                figures = measure(framework, mode, options.scale)
            except (cache.Missing, ServerFailed, Failed) as problem:
                print(f"{framework.name}: {problem}", file=sys.stderr)
                continue
            print(f"round {number + 1}, {framework.name}: {figures}", file=sys.stderr, flush=True)
            found.setdefault(framework.name, []).append(figures)
    print(table(found))
    return 0 if found else 1


class Failed(Exception):
    """A worker or a publisher did not do what it should."""


def measure(framework: Framework, mode: Mode, scale: float = 1.0) -> Figures:
    """One round. Raises Missing, ServerFailed, Failed."""
    home = cache.directory("bench-data") / f"workers-{os.getpid()}"
    python = sys.executable if framework.is_ours else str(interpreter(framework.requirements))
    server = framework.server(mode, home)
    try:
        server.start()
        url = framework.url.format(server.port)
        jobs = max(100, int(framework.jobs * scale))
        begun = time.monotonic()
        _publish(framework, python, url, "publish", jobs)
        published = jobs / (time.monotonic() - begun)
        notes = home / "notes.json"
        done = _work(framework, python, url, notes, jobs, lambda: None)
        paced = _work(
            framework,
            python,
            url,
            notes,
            PACED_JOBS,
            lambda: _publish(framework, python, url, "pace", PACED_JOBS),
        )
    finally:
        server.stop()
    waited: list[float] = paced["waited"]
    rate = (jobs - 1) / (done["last"] - done["first"])
    return Figures(published, rate, waited[len(waited) // 2] * 1000, waited[int(len(waited) * 0.99)] * 1000)


def _work(
    framework: Framework, python: str, url: str, notes: Path, jobs: int, then: Callable[[], None]
) -> dict[str, Any]:
    """What a worker noted of so many jobs; `then` is done when it has started."""
    notes.unlink(missing_ok=True)
    environment = _environment(url) | {"BENCH_NOTES": str(notes), "BENCH_COUNT": str(jobs)}
    worker = Process(framework.work(python), notes.with_suffix(".log"), environment)
    try:
        time.sleep(2.0)  # none of them says when it is ready
        then()
        deadline = time.monotonic() + SECONDS_MAX
        while not notes.exists():
            if time.monotonic() > deadline or not worker.running:
                said = notes.with_suffix(".log").read_text()[-500:]
                raise Failed(f"its worker has not done {jobs} jobs within {SECONDS_MAX:g} s: {said}")
            time.sleep(0.05)
    finally:
        worker.stop()
    told: dict[str, Any] = json.loads(notes.read_text())
    return told


def _publish(framework: Framework, python: str, url: str, how: str, jobs: int) -> None:
    try:
        done = subprocess.run(
            [python, "-m", framework.program, how, str(jobs)],
            cwd=JOBS,
            env={**os.environ, **_environment(url)},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{jobs} jobs were not published within {SECONDS_MAX:g} s") from None
    if done.returncode:
        raise Failed(done.stderr[-500:])


def _environment(url: str) -> dict[str, str]:
    return {"BENCH_URL": url, "PYTHONPATH": os.pathsep.join([str(JOBS), os.environ.get("PYTHONPATH", "")])}


def interpreter(requirements: Sequence[str]) -> Path:
    """One that knows these packages, in an environment made once, in the cache. Raises Missing."""
    mark = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:16]
    home = cache.directory(f"bench-workers-{mark}")
    program, complete = home / "bin" / "python", home / "complete"
    if not complete.exists():
        print(f"installing {requirements[0]} into an environment of its own, once …", file=sys.stderr)
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(home)],
            [str(program), "-m", "pip", "install", "-q", *requirements],
        ):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False
            )
            if done.returncode:
                raise cache.Missing(f"can't be installed: {(done.stderr or done.stdout).strip()[-500:]}")
        complete.touch()  # an installation that was broken off is begun anew
    return program


def table(found: dict[str, list[Figures]]) -> str:
    """Medians of all rounds."""
    lines = [
        "| | published, jobs/s | done, jobs/s | publish to start, p50 ms | p99 ms |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, rounds in found.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        published, done, p50_ms, p99_ms = medians
        lines.append(f"| {name} | {published:,.0f} | {done:,.0f} | {p50_ms:.2f} | {p99_ms:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
