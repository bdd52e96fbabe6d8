"""Events that a run of many seeds must reach: a check that is never put to the test proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SEEDS_MIN: Final = 200  # fewer need not reach everything

EVENTS: Final[tuple[str, ...]] = (
    "clean stop",
    "power cut",
    "power cut while it starts",
    "start refused",
    "groups: a commit outlived a power cut",
    "groups: a commit was refused",
    "groups: a group changed its protocol",
    "groups: a group was deleted",
    "groups: a later generation began",
    "groups: a member fell silent",
    "groups: a member was fenced",
    "groups: a partition was given up for another member",
    "groups: a stale commit was refused",
    "groups: a static member came back",
    "groups: a static member waited for its former self to be gone",
    "groups: an operator's commit was refused",
    "queues: a crash after a state was written as a whole",
    "queues: a dead letter, attempts",
    "queues: a dead letter, expired",
    "queues: a dead letter, rejected",
    "queues: a delayed message came",
    "queues: a lock was left to end",
    "queues: a member fell silent",
    "queues: a message came again",
    "queues: a message waited for an earlier one of its key",
    "queues: a subscription was altered",
    "queues: an acknowledgement was refused",
    "queues: create was answered",
    "queues: nobody knows of an acknowledgement",
    "queues: purge was answered",
    "queues: seek was answered",
    "queues: what was acknowledged by all was deleted",
    "compacted: records were superseded",
    "compacted: the tombstone of a key was dropped",
    "damaged: a reader met a damaged batch",
    "at most once: a commit was refused",
    "at most once: messages came",
    "named: a repetition was answered with where it was stored first",
    "named: another content was refused",
    "recreated: a topic was deleted while somebody read it",
    "recreated: create was answered",
    "recreated: delete was answered",
    "recreated: grow was answered",
    "recreated: messages of a topic made anew outlived all faults",
    "redriven: a message died twice and came to its end",
    "redriven: a redrive was killed",
    "redriven: letters were sent back",
    "repeated: a duplicate was left out",
    "retained: a reader was overtaken",
    "retained: records were deleted by request",
    "retained: the start of retained-bytes rose",
    "retained: the start of retained-time rose",
)

OF_CLUSTERS: Final[tuple[str, ...]] = (
    "clean stop",
    "cluster: a leader learned late of its successor",
    "cluster: a leader was elected",
    "cluster: a leader was elected from the ELR",
    "cluster: a leader whose disk failed resigned",
    "cluster: a leader without followers resigned",
    "cluster: a log was cut",
    "cluster: a node left the ISR when it started without its tail",
    "cluster: a replica came into sync",
    "cluster: a replica left the ISR",
    "cluster: nobody knew of a change of the ISR",
    "cluster: the controller moved",
    "groups: a commit outlived a power cut",
    "groups: a later generation began",
    "history compacted",
    "lease expired",
    "membership: a lease was lost and regained",
    "membership: a node that was away lost its id to another process",
    "membership: a second process with one id was refused",
    "membership: another process had the id of a node that was away",
    "power cut",
    "power cut while it starts",
    "start refused",
    "unknown commit that happened",
)


def missing(seen: Mapping[str, int], nodes: int) -> list[str]:
    return [event for event in (EVENTS if nodes == 1 else OF_CLUSTERS) if not seen.get(event)]
