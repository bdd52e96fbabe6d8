"""What nodes and clients write to their logs: warnings go to the trace, errors must be expected ones."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Final, Self

from postroad.errors import FencedLeaderEpoch
from simulator.cluster_history import ClusterHistory
from simulator.violation import Violation
from simulator.world import World

# What an operator has to be told when disks fail. Anything else, and every traceback, is a fault.
EXPECTED: Final = (
    "partition %s-%d refuses appends: %s",
    "%s can't be written: %s Further failures are counted, not logged.",
    "partition %s-%d is offline: its log can't be opened: %s",
    "partition %s-%d: its ledger can't be opened: %s",
    "partition %s-%d could not be closed: %s",
    "dead letters of %s can't be copied; trying again in %.1f s: %s",
    "compaction of %s-%d: %s",
    "retention of %s-%d: %s",
    "a segment's files could not be removed: %s",
    "%s-%d can't write what its leader sent: %s",
    "%s-%d can't follow its leader: %s",
    "%s-%d can't follow its leader's start: %s",
    "%s: %s; trying again in %g s",  # what a disk that fails has to be tried again
)
# Not warnings, but events to be reached, or to be known to checks.
EVENTS: Final = {
    "%s-%d was cut from %d to %d, as its leader has it": "cluster: a log was cut",
    "%s-%d begins anew at %d, where its leader's log starts": "cluster: a log began anew",
    "%s-%d begins anew at %d: deletions that its leader has forgotten may be missing here": (
        "cluster: a log without some tombstones began anew"
    ),
}
PARTED: Final = "%s-%d has parted from its leader: epoch %d here, epoch %d ends at %d there"
REFUSED: Final = "%s-%d: the leader refused a fetch of epoch %d: error %d"
STATE_LOADED: Final = "%s-%d is loaded"
LEDGER_LOADED: Final = "the ledger of %s-%d is loaded"
TELLERS: Final = tuple(
    logging.getLogger(f"postroad.broker.{room}")
    for room in ("replica_fetcher", "replica_fetchers", "internal_topic", "subscriptions.ledgers")
)
REPEATED_MAX: Final = 30  # of one line in a scenario: an error that is said again and again says nothing


class LogLines(logging.Handler):
    """`with` it, every line of this process goes to the scenario."""

    def __init__(self, world: World, history: ClusterHistory) -> None:
        super().__init__(logging.DEBUG)
        self._world = world
        self._history = history
        self._counts: Counter[str] = Counter()
        self._unexpected: list[Violation] = []
        self._before: list[logging.Handler] = []

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._before, root.handlers = root.handlers, [self]
        for teller in TELLERS:
            teller.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().handlers = self._before
        for teller in TELLERS:
            teller.setLevel(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            self._hear(record)
            return
        text = record.getMessage()
        self._world.note("log", record.levelname, text)
        if record.levelno < logging.ERROR:
            return
        self._counts[text] += 1
        if record.exc_info is not None and record.exc_info[1] is not None:
            self._unexpected.append(Violation("E2", f"{text}: {record.exc_info[1]!r}", self._world.now))
        elif not record.msg.startswith(EXPECTED):
            self._unexpected.append(Violation("E2", text, self._world.now))

    def _hear(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple | dict) or record.args is None
        told = tuple(record.args or ())
        if record.msg in EVENTS:
            self._world.sometimes(EVENTS[record.msg])
        elif record.msg == PARTED and told[2] != told[3]:
            self._world.sometimes("cluster: a log had parted from its leader's in an earlier epoch")
        elif record.msg == REFUSED and told[3] == FencedLeaderEpoch.code:
            self._world.sometimes("cluster: a fetch of an older epoch was refused")
        elif record.msg == STATE_LOADED:
            self._history.events.loaded("a coordinator", str(told[0]), int(str(told[1])))
        elif record.msg == LEDGER_LOADED:
            self._history.ledger_loaded(str(told[0]), int(str(told[1])))

    def violations(self) -> Iterator[Violation]:
        yield from self._unexpected
        for text, count in self._counts.items():
            if count > REPEATED_MAX:
                yield Violation("E3", f"{count} times: {text}")
