"""A restored node, against what clients were told before its backup began and had tried when it ended."""

from __future__ import annotations

from confluent_kafka import Producer

from tests.backups.lags import lag_of
from tests.backups.load import (
    COPIERS,
    JOBS,
    LEFT,
    ORDERS,
    PAIRS,
    RIGHT,
    Place,
    Told,
    committed_of,
    drain,
    ends_of,
    read_all,
)
from tests.clients.confluent import reach
from tests.clients.wait import PATIENCE_S


def check_restored(bootstrap: str, before: Told, after: Told) -> dict[str, int]:
    """Messages, offsets, queue states and transactions; returns how many of each were there."""
    orders = check_messages(bootstrap, ORDERS, before, after)
    jobs = check_messages(bootstrap, JOBS, before, after)
    check_offsets(bootstrap, before, after)
    drained = check_queue(bootstrap, jobs, before, after)
    pairs = check_transactions(bootstrap, before, after)
    return {"orders": orders, "jobs": sum(jobs_of(bootstrap).values()), "drained": drained, "pairs": pairs}


def jobs_of(bootstrap: str) -> dict[int, int]:
    return ends_of(bootstrap, JOBS)


def check_messages(bootstrap: str, topic: str, before: Told, after: Told) -> int:
    """What was acknowledged before is there, each once and in order, and nothing that was never sent."""
    found = read_all(bootstrap, topic, ends_of(bootstrap, topic))
    for partition, messages in found.items():
        numbers = [number for _, number in messages]
        assert numbers == sorted(set(numbers)), f"{topic}/{partition} has messages twice or out of order"
        assert [offset for offset, _ in messages] == list(range(len(messages)))
        sent = before.sent[topic].get(partition, [])
        assert numbers[: len(sent)] == sorted(sent), f"{topic}/{partition} lacks what was acknowledged"
        assert set(numbers) <= set(after.tried[topic][partition])
    return sum(map(len, found.values()))


def check_offsets(bootstrap: str, before: Told, after: Told) -> None:
    """No group is behind what was committed before, nor beyond what was committed or what is there."""
    ends = ends_of(bootstrap, ORDERS)
    for partition, offset in committed_of(bootstrap).items():
        offset = max(offset, 0)
        assert before.committed.get(partition, 0) <= offset <= after.tried_commits.get(partition, 0)
        assert offset <= ends[partition], "an offset points beyond the log"


def check_queue(bootstrap: str, jobs: int, before: Told, after: Told) -> int:
    """What was accepted before never comes again; what was not accepted comes, each message once more."""
    there: set[Place] = {(p, offset) for p, end in jobs_of(bootstrap).items() for offset in range(end)}
    assert len(there) == jobs
    must_come = there - after.tried_accepts
    left = lag_of(bootstrap)
    seen = drain(bootstrap, left)
    assert must_come <= seen.keys(), "the queue has lost messages"
    assert not before.accepted & seen.keys(), "what was accepted before the backup came again"
    assert seen.keys() <= there, "the queue knows of messages that the log does not have"
    assert lag_of(bootstrap) == 0
    return len(seen)


def check_transactions(bootstrap: str, before: Told, after: Told) -> int:
    """Each transaction is in both topics or in none, and so is its offset."""
    Producer({**reach(bootstrap), "transactional.id": PAIRS}).init_transactions(
        PATIENCE_S
    )  # ends an open one
    numbers = []
    for topic in (LEFT, RIGHT):
        found = read_all(bootstrap, topic, ends_of(bootstrap, topic, 1))
        numbers.append({number for _, number in found[0]})
    assert numbers[0] == numbers[1], "a transaction was restored in part"
    assert before.pairs <= numbers[0] <= after.tried_pairs
    last = max(numbers[0], default=-1)
    assert committed_of(bootstrap, COPIERS)[0] == last + 1, "offsets of a transaction without its messages"
    return len(numbers[0])
