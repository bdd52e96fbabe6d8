"""A scenario is decided by its seed, finds nothing in the code as it is, and something in every mutant."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from simulator.campaign import Campaign, play_apart
from simulator.faults import KINDS
from simulator.mutants import groups, logs, queues, repetitions, topics

SEEDS = range(1, 25)


class Catch(NamedTuple):
    """Seeds of which at least one shows a mutant: another order of events may take the fault from any.
    Where none is left, `make simulate ARGS="--mutant NAME"` finds others."""

    workload: str
    seeds: tuple[int, ...]
    faults: tuple[str, ...] = tuple(KINDS)


CAUGHT_BY = {
    "acknowledge-before-sync": Catch("logs", (1, 5)),
    "forget-failed-sync": Catch("logs", (5, 12, 14), ("fail", "power")),
    "append-again": Catch("logs", (22, 26), ("kill", "cut", "reset")),
    "show-unsynced": Catch("logs", (1, 6), ("power", "slow")),
    "serve-torn-tail": Catch("logs", (1, 2), ("power", "crash")),
    "short-way-unchecked": Catch("logs", (8, 14), ("power", "slow")),
    "index-trusted": Catch("logs", (1, 3, 7)),
    "stale-commit": Catch("groups", (1, 2)),
    "commit-before-durable": Catch("groups", (5, 10)),
    "two-owners": Catch("groups", (1, 2)),
    "accept-before-commit": Catch("queues", (7, 10)),
    "snapshot-without-tail": Catch("queues", (14, 7, 23)),
    "ledger-kept": Catch("queues", (2, 4), ("power",)),
    "tombstone-not-awaited": Catch("queues", (35, 37)),
    "retention-over-unacknowledged": Catch("queues", (1, 2)),
    "short-locks": Catch("queues", (1, 2)),
    "settled-by-anybody": Catch("queues", (2, 3)),
    "uncounted-deliveries": Catch("queues", (1, 2)),
    "no-backoff": Catch("queues", (1, 2)),
    "no-delays": Catch("queues", (1, 2)),
    "no-order": Catch("queues", (1, 3)),
    "no-letters": Catch("queues", (1, 2)),
    "compact-newest": Catch("compacted", (1, 2)),
    "tombstones-at-once": Catch("compacted", (1, 2, 3, 4)),
    "retention-early": Catch("retained", (1, 2, 3, 4)),
    "start-in-memory": Catch("retained", (1, 2, 3)),
    "deletion-not-awaited": Catch("recreated", (5, 2)),
    "ids-used-again": Catch("recreated", (1, 2, 3)),
    "begin-early": Catch("at-most-once", (1, 2)),
    "duplicates-for-ever": Catch("repeated", (1, 2)),
    "no-lookback": Catch("repeated", (1, 2)),
    "names-forgotten": Catch("named", (1, 2)),
    "struck-off-first": Catch("redriven", (3, 4, 5, 6)),
    "redriven-to-all": Catch("redriven", (1, 2)),
    "checkpoint-unsynced": Catch("damaged", (1, 2, 3, 4, 5, 6), ("flip", "power", "kill", "stop")),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_breaks_no_promise(seed: int) -> None:
    assert [str(violation) for violation in play_apart(Campaign(), seed).violations] == []


def digest_of(seed: int, hash_seed: str) -> str:
    """From an interpreter of its own."""
    program = (
        "from simulator.campaign import Campaign, play_apart; "
        f"print(play_apart(Campaign(seconds=20), {seed}).digest)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def test_a_seed_gives_the_same_trace_whatever_the_hash_seed() -> None:
    traces = {digest_of(7, hash_seed) for hash_seed in ("1", "2")}
    assert len(traces) == 1
    assert digest_of(8, "1") not in traces


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_mutant_is_caught(name: str) -> None:
    catch = CAUGHT_BY[name]
    campaign = Campaign(workloads=(catch.workload,), kinds=catch.faults, mutant=name)
    assert any(play_apart(campaign, seed).violations for seed in catch.seeds)


def test_every_mutant_of_one_node_is_tried() -> None:
    mutants = (*logs.ALL, *groups.ALL, *queues.ALL, *topics.ALL, *repetitions.ALL)
    assert CAUGHT_BY.keys() == {mutant.name for mutant in mutants}
