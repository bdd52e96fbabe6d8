"""A scenario is decided by its seed, finds nothing in the code as it is, and something in every mutant."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from simulator.campaign import Campaign, play_apart
from simulator.faults import KINDS
from simulator.mutants import groups, logs, pledges, queues, repetitions, shared, topics, transactions
from tests.simulator.caught import is_caught

SEEDS = range(1, 25)


class Catch(NamedTuple):
    """What shows a mutant soon, within a few seeds in the mean; that all faults do, too, is a longer run."""

    workload: str
    faults: tuple[str, ...] = tuple(KINDS)


CAUGHT_BY = {
    "acknowledge-before-sync": Catch("logs", ("sag",)),
    "forget-failed-sync": Catch("logs", ("fail", "sag")),
    "append-again": Catch("logs", ("reset",)),
    "show-unsynced": Catch("logs", ("sag",)),
    "serve-torn-tail": Catch("logs", ("sag", "power")),
    "short-way-unchecked": Catch("logs", ("sag",)),
    "index-trusted": Catch("logs", ("index", "kill")),
    "stale-commit": Catch("groups"),
    "commit-before-durable": Catch("groups", ("sag",)),
    "two-owners": Catch("groups"),
    "accept-before-commit": Catch("queues", ("sag",)),
    "snapshot-without-tail": Catch("queues", ("kill",)),
    "ledger-kept": Catch("queues", ("sag", "kill")),
    "tombstone-not-awaited": Catch("queues", ("sag", "power")),
    "retention-over-unacknowledged": Catch("queues"),
    "short-locks": Catch("queues"),
    "settled-by-anybody": Catch("queues"),
    "uncounted-deliveries": Catch("queues"),
    "no-backoff": Catch("queues"),
    "no-delays": Catch("queues"),
    "no-order": Catch("queues"),
    "no-letters": Catch("queues"),
    "compact-newest": Catch("compacted"),
    "tombstones-at-once": Catch("compacted"),
    "retention-early": Catch("retained"),
    "start-in-memory": Catch("retained"),
    "deletion-not-awaited": Catch("recreated"),
    "ids-used-again": Catch("recreated"),
    "begin-early": Catch("at-most-once"),
    "duplicates-for-ever": Catch("repeated"),
    "no-lookback": Catch("repeated"),
    "names-forgotten": Catch("named"),
    "struck-off-first": Catch("redriven"),
    "redriven-to-all": Catch("redriven"),
    "marker-before-prepare": Catch("transactions", ("sag",)),
    "stable-past-marker": Catch("transactions", ("sag", "slow")),
    "no-verification": Catch("transactions", ("cut", "pause", "reset", "slow")),
    "no-connection-fence": Catch("transactions", ("reset", "kill")),
    "end-of-any-epoch": Catch("transactions", ("reset", "kill")),
    "marker-without-epoch": Catch("transactions", ("reset", "kill")),
    "deliver-aborted": Catch("isolated"),
    "deliver-open": Catch("isolated"),
    "pledges-forgotten": Catch("taken", ("kill", "stop")),
    "pledges-not-ended": Catch("taken"),
    "pledges-committed": Catch("taken"),
    "pledges-of-any-epoch": Catch("taken"),
    "pledges-not-joined": Catch("taken"),
    "all-attempts-kept": Catch("shared"),
    "batch-forgotten": Catch("shared"),
    "writers-keep-epochs": Catch("shared"),
    "checkpoint-unsynced": Catch("damaged", ("flip", "power", "kill", "stop")),
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
    workload, faults = CAUGHT_BY[name]
    assert is_caught(Campaign(workloads=(workload,), kinds=faults, mutant=name))


def test_every_mutant_of_one_node_is_tried() -> None:
    mutants = (
        *logs.ALL,
        *groups.ALL,
        *queues.ALL,
        *topics.ALL,
        *repetitions.ALL,
        *transactions.ALL,
        *pledges.ALL,
        *shared.ALL,
    )
    assert CAUGHT_BY.keys() == {mutant.name for mutant in mutants}
