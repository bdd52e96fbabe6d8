"""What goes wrong, and when: a plan that is data, so that it can be shown, repeated and shrunk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from typing import Final, NamedTuple

FIRST_S: Final = 2.0  # the nodes have started by then
PAUSE_MEAN_S: Final = 4.0  # between two faults
FLIP_MEAN_S: Final = 15.0  # between two flipped bits
FLIP: Final = "flip"
INDEX_MEAN_S: Final = 20.0  # between two damaged indexes
INDEX: Final = "index"

# Each kind with the longest time that it lasts (0: it is over at once).
KINDS: Final[dict[str, float]] = {
    "kill": 0.0,  # kill -9, and a start soon after
    "power": 0.0,  # the machine loses power: what was not synced is kept, lost or torn
    "sag": 2.0,  # syncs take long, and the power fails meanwhile: what they were to save is in doubt
    "stop": 0.0,  # SIGTERM, and a start soon after
    "crash": 0.0,  # kill or power cut between two disk operations of what comes next
    "pause": 15.0,  # SIGSTOP, SIGCONT
    "cut": 12.0,  # the network between the node and a client or all of them, in one direction or both
    "reset": 5.0,  # all connections of a node are reset, and after that some with what is sent over them
    "slow": 5.0,  # each disk operation takes fifty times as long
    "fail": 2.0,  # disk operations fail with EIO, some of each kind or many syncs
    "full": 8.0,  # the disk has no room
    "store": 15.0,  # the coordination store is away from all
    "away": 15.0,  # … from this node
    "lossy": 15.0,  # the way to the store loses and delays requests, answers and events
    "compact": 0.0,  # the store forgets its history
    "clock": 0.0,  # the node's wall clock jumps
    FLIP: 0.0,  # kill -9, and a bit of what lies on the disk is wrong, in a topic that is there to bear it
    "isolate": 12.0,  # the node and all other nodes don't reach each other, in one direction or both
    "alone": 12.0,  # … nor the node and the coordination store; clients reach it
    "pair": 0.0,  # two nodes are killed, the second one some moments after the first
    "falter": 6.0,  # whatever is sent takes a long time, and two nodes are killed, one after the other
    "blackout": 0.0,  # all machines lose power at once
    "network": 10.0,  # whatever is sent takes a long time
    INDEX: 0.0,  # kill -9, and indexes of some segments are cut, altered or gone: they are hints
}

# One node has no use for these.
OF_CLUSTERS: Final = ("isolate", "alone", "pair", "falter", "blackout", "network")


class Fault(NamedTuple):
    at: float  # seconds since the beginning
    kind: str
    node: int  # index of the node that is struck
    lasts: float
    amount: float  # 0 … 1, as the kind understands it


class Flip(NamedTuple):
    """One bit on a disk that is not what it was."""

    at: float
    path: str
    position: int


def make_plan(random: Random, seconds: float, nodes: int, kinds: Collection[str]) -> list[Fault]:
    """Faults at random times until the last quarter second; they may overlap.

    Damage comes on top: flipped bits harm nobody but the topics that are there for them, and indexes nobody.
    """
    apart = (FLIP, INDEX) if nodes > 1 else (FLIP, INDEX, *OF_CLUSTERS)
    wanted = sorted(kind for kind in kinds if kind not in apart)
    plan = _faults(random, seconds, nodes, wanted, PAUSE_MEAN_S)
    if FLIP in kinds:
        plan += _faults(random, seconds, nodes, [FLIP], FLIP_MEAN_S)
    if INDEX in kinds:
        plan += _faults(random, seconds, nodes, [INDEX], INDEX_MEAN_S)
    return sorted(plan)


def _faults(random: Random, seconds: float, nodes: int, wanted: Sequence[str], pause_s: float) -> list[Fault]:
    plan: list[Fault] = []
    at = FIRST_S + random.expovariate(1 / pause_s)
    while wanted and at < seconds - 0.25:
        kind = random.choice(wanted)
        lasts = random.uniform(0.1, KINDS[kind]) if KINDS[kind] else 0.0
        plan.append(Fault(round(at, 6), kind, random.randrange(nodes), round(lasts, 6), random.random()))
        at += random.expovariate(1 / pause_s)
    return plan
