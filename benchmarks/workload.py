"""A workload: what is run, which rows of the table it fills, and the goal of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from benchmarks.servers import Mode, Server
from benchmarks.session import Measurement, Session


class Part(Enum):
    """A table of its own in the report. `against`: those whose best figure the ratio is to."""

    LOGS = "logs", ("kafka",)
    QUEUES = "queues", ("nats", "rabbitmq", "rabbitmq-quorum")

    def __init__(self, word: str, against: tuple[str, ...]) -> None:
        self.word = word
        self.against = against


@dataclass(frozen=True)
class Row:
    """One line of the table. `goal`: at least that, or at most where less is better.

    It is a goal for the ratio to the others or, where `alone`, for Postroad's own figure.
    """

    title: str
    unit: str
    more_is_better: bool
    goal: float | None = None
    alone: bool = False


@dataclass(frozen=True)
class Workload:
    """`measure` runs it once, on servers that have all `clients` (attributes of Server) and are in `only`."""

    key: str
    rows: tuple[Row, ...]
    measure: Callable[[Session], Measurement]
    modes: tuple[Mode, ...] = (Mode.PAGE_CACHE, Mode.SYNCED)
    part: Part = Part.LOGS
    clients: tuple[str, ...] = ("client",)
    only: tuple[str, ...] = ()  # names of servers; empty: all
    long: bool = False  # not in the rounds that warm up, and not for a quick look

    def fits(self, server: type[Server]) -> bool:
        if self.only and server.name not in self.only:
            return False
        return all(getattr(server, client) for client in self.clients)

    def programs(self, server: type[Server]) -> Iterator[str]:
        """The C programs that it runs against a server that it fits."""
        return (getattr(server, client) for client in self.clients)
