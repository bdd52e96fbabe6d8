"""How many descriptors connections may take, so that there is always one to write a message with.

Logs and connections share the process's limit on open files. A client can open connections at will; a log
that finds no descriptor can't take a message. So the logs' share is kept aside, and connections get the rest.
"""

from __future__ import annotations

from typing import Final

from postroad.broker.partitions import Partitions
from postroad.log.segment_cache import OPEN_SEGMENTS_MAX

# The coordination store, listening sockets, the event loop, the gateway's pipes, and a few files that threads
# open for a moment: indexes, directories, what compaction reads and writes.
NODE_DESCRIPTORS: Final = 64
PARTITION_DESCRIPTORS: Final = (
    3  # of each log: its newest segment, its checkpoint, and the next segment or an index
)
CONNECTIONS_SHARE: Final = (
    4  # a quarter of the limit is left to connections, however many partitions there are
)


class Descriptors:
    def __init__(self, partitions: Partitions, limit: int | None) -> None:
        self._partitions = partitions
        self._limit = limit  # on open files, of the process; None: there is none

    def for_connections(self, wanted: int) -> int:
        """How many connections there may be: `wanted`, or fewer where the logs need the descriptors."""
        if self._limit is None:
            return wanted
        return min(wanted, max(self._limit - self._kept(), self._limit // CONNECTIONS_SHARE))

    def explain(self, wanted: int) -> str:
        """Why there may not be as many connections as wanted, and what to do about it."""
        return (
            f"the limit on open files is {self._limit}, and {self._kept()} are kept for the logs. "
            f"Raise it (LimitNOFILE, ulimit -n) to allow limits.connections_max, {wanted}"
        )

    def _kept(self) -> int:
        return NODE_DESCRIPTORS + OPEN_SEGMENTS_MAX + PARTITION_DESCRIPTORS * self._partitions.count
