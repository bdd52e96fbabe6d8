"""A workload: what is run, which rows of the table it fills, and the goal of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from benchmarks.servers import Mode, Server
from benchmarks.session import Measurement, Session


class Part(Enum):
    """A table of its own in the report. `against`: those whose best figure the ratio of `ours` is to."""

    LOGS = "logs", "postroad", ("kafka",)
    TRANSACTIONS = "transactions", "postroad", ("kafka",)
    QUEUES = "queues", "postroad", ("nats", "rabbitmq", "rabbitmq-quorum")
    GATEWAY = "gateway", "postroad-gateway", ("moto", "elasticmq")
    CLUSTER = "cluster", "postroad-cluster", ("kafka-cluster",)
    FAILOVER = "failover", "postroad-cluster", ("kafka-cluster",)
    TWO_NODES = "two-nodes", "postroad-two", ("postroad",)
    TLS = "tls", "postroad-tls", ("kafka-tls",)
    TLS_PRICE = "tls-price", "postroad-tls", ("postroad",)
    RIGHTS = "rights", "postroad-rights", ("postroad",)

    def __init__(self, word: str, ours: str, against: tuple[str, ...]) -> None:
        self.word = word
        self.ours = ours
        self.against = against

    @property
    def is_alone(self) -> bool:
        """Whether it has its servers for itself.

        A node that was killed is as cold as a new one, and three idle brokers are too many beside another
        that is measured.
        """
        return self not in (Part.LOGS, Part.TRANSACTIONS, Part.QUEUES, Part.GATEWAY)


@dataclass(frozen=True)
class Row:
    """One line of the table. Goals: at least that, or at most where less is better.

    `goal` is for the ratio to the others, `own_goal` for Postroad's own figure.
    """

    title: str
    unit: str
    more_is_better: bool
    goal: float | None = None
    own_goal: float | None = None


@dataclass(frozen=True)
class Workload:
    """`measure` runs it once, on servers that have all `clients` (attributes of Server) and are in `only`.

    Servers of several nodes, and those that say so, are measured only where they are named."""

    key: str
    rows: tuple[Row, ...]
    measure: Callable[[Session], Measurement]
    modes: tuple[Mode, ...] = (Mode.PAGE_CACHE, Mode.SYNCED)
    part: Part = Part.LOGS
    clients: tuple[str, ...] = ("client",)
    only: tuple[str, ...] = ()  # names of servers; empty: all of one node
    long: bool = False  # not in the rounds that warm up, and not for a quick look

    def fits(self, server: type[Server]) -> bool:
        name = server.measured_as or server.name
        if name not in self.only if self.only else server.nodes > 1 or server.is_named:
            return False
        return all(getattr(server, client) for client in self.clients)

    def programs(self, server: type[Server]) -> Iterator[str]:
        """The C programs that it runs against a server that it fits."""
        return (getattr(server, client) for client in self.clients)
