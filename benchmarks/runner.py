"""Runs the workloads: all servers of a mode are up, and each workload visits one after the other.

So a noisy minute of the machine falls on all sides. The order of the servers turns round from one round
to the next. The first round is thrown away, and so are the rounds that a server gets alone to warm up.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.cache import Missing
from benchmarks.clients import ClientFailed, build
from benchmarks.process import ServerFailed
from benchmarks.results import ModeResults, ServerFacts, number
from benchmarks.servers import Mode, Server
from benchmarks.session import Limits, Measurement, Session
from benchmarks.workload import Part, Workload

Peers = Mapping[str, type[Server]]


def run_mode(
    mode: Mode, peers: Peers, workloads: Sequence[Workload], rounds: int, limits: Limits, data: Path
) -> ModeResults:
    """Measures `rounds` rounds after one that warms up. Servers that can't be had are named in `left_out`."""
    outcome = ModeResults(mode)
    for together in groups([workload for workload in workloads if mode in workload.modes]):
        outcome.add(_run_group(mode, peers, together, rounds, limits, data))
    return outcome


def groups(workloads: Sequence[Workload]) -> Iterator[list[Workload]]:
    """The workloads that run on the same servers."""
    parts = {workload.part for workload in workloads if workload.part.is_alone}
    for part in (None, *(part for part in Part if part in parts)):
        together = [each for each in workloads if (each.part if each.part.is_alone else None) is part]
        if together:
            yield together


def _run_group(
    mode: Mode, peers: Peers, todo: Sequence[Workload], rounds: int, limits: Limits, data: Path
) -> ModeResults:
    outcome = ModeResults(mode)
    with _running(mode, peers, _programs(peers, todo), data, outcome) as servers:
        _warm_up(servers, todo)
        for turn in range(rounds + 1):
            title = f"{mode.value}, " + (f"round {turn} of {rounds}" if turn else "warm-up")
            sessions = [Session(server, f"{mode.name[0]}{turn}", limits) for server in servers]
            now = [workload for workload in todo if turn or not workload.long]
            for workload, name, measurement in _round(title, sessions if turn % 2 else sessions[::-1], now):
                if turn:
                    outcome.results.setdefault(workload.key, {}).setdefault(name, {})[turn] = measurement
        for server in servers:
            outcome.servers[server.name].end_mb = server.running.resident_mb()
    return outcome


def _programs(peers: Peers, workloads: Sequence[Workload]) -> dict[str, list[str]]:
    """The peers that have something to do, each with the C programs that do it."""
    return {
        name: programs
        for name, peer in peers.items()
        if (
            programs := [
                program
                for workload in workloads
                if workload.fits(peer)
                for program in workload.programs(peer)
            ]
        )
    }


@contextmanager
def _running(
    mode: Mode, peers: Peers, programs: Mapping[str, Sequence[str]], data: Path, outcome: ModeResults
) -> Iterator[list[Server]]:
    servers: list[Server] = []
    try:
        for name in programs:
            server = peers[name](mode, data / f"{mode.name.lower()}-{name}")
            servers.append(server)
            try:
                for program in dict.fromkeys(programs[name]):
                    build(program)
                server.start()
            except (Missing, ServerFailed, OSError) as problem:
                _say(f"{name} is left out ({mode.value}): {problem}")
                outcome.left_out[name] = _reason(problem)
                server.stop()
                servers.remove(server)
                continue
            facts = ServerFacts(server.version(), server.ready_seconds, server.running.resident_mb())
            outcome.servers[name] = facts
            _say(f"{name} {facts.version} is ready ({mode.value})")
        yield servers
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(data, ignore_errors=True)


def _warm_up(servers: Sequence[Server], workloads: Sequence[Workload]) -> None:
    """Rounds of full length for those that need them, also where the measured rounds are short."""
    for server in servers:
        for turn in range(server.warm_rounds):
            session = Session(server, f"{server.mode.name[0]}w{turn}", Limits())
            todo = [workload for workload in workloads if not workload.long]
            for _ in _round(f"{server.mode.value}, warming up", [session], todo):
                continue


def _round(
    title: str, sessions: Sequence[Session], workloads: Sequence[Workload]
) -> Iterator[tuple[Workload, str, Measurement]]:
    try:
        for workload in workloads:
            shown: list[str] = []
            for session in sessions:
                if not workload.fits(type(session.server)):
                    continue
                try:
                    measurement = workload.measure(session)
                except ClientFailed as problem:
                    _say(f"{title}: {workload.key} failed on {session.server.name}: {problem}")
                    continue
                shown.append(
                    f"{session.server.name} {' / '.join(number(value) for value in measurement.values)}"
                )
                yield workload, session.server.name, measurement
            if shown:
                _say(f"{title}: {workload.key}: {' · '.join(shown)}")
    finally:
        for session in sessions:
            session.close()


def _reason(problem: Exception) -> str:
    """The first line, for the report: what follows it may hold paths."""
    text = problem.strerror if isinstance(problem, OSError) else str(problem)
    return (text or type(problem).__name__).splitlines()[0].rstrip(":.")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
