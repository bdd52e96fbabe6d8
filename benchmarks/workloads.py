"""What is measured: the workloads, the rows of the table that each fills, and the goal of each row.

A workload is one run of a C client against one server, bounded by a number of messages and by seconds,
whichever comes first, so that a slow broker does not stretch the round. The server's CPU time is taken
around that run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks import clients
from benchmarks.servers import Mode, Server

CPU_MESSAGES = 400_000  # the row "server CPU" is for as many messages
BULK_WINDOW = 1000  # messages unacknowledged in bulk, for brokers that acknowledge one by one
CONSUME_SECONDS_MAX = 15.0
LATENCY_SECONDS_MAX = 15.0


@dataclass(frozen=True)
class Row:
    """One line of the table. `goal` is a ratio to Kafka: at least that, or at most where less is better."""

    title: str
    unit: str
    more_is_better: bool
    goal: float | None = None


@dataclass(frozen=True)
class Measurement:
    """One value for each of the workload's rows, and what the run cost the server."""

    values: tuple[float, ...]
    messages: float
    cpu_seconds: float


@dataclass(frozen=True)
class Limits:
    """How long a run may be; `scale` shortens it for a quick look."""

    scale: float = 1.0
    seconds: float = 3.0

    def messages(self, count: int) -> int:
        return max(int(count * self.scale), 100)


@dataclass
class Session:
    """One server during one round: its topics, and what has been produced into them."""

    server: Server
    tag: str
    limits: Limits
    topics: list[str] = field(default_factory=list)
    filled: dict[int, tuple[str, Measurement]] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        """A new topic; it is dropped when the session ends."""
        topic = f"{name}-{self.tag}"
        self._client("create", topic)
        self.topics.append(topic)
        return topic

    def run(
        self, command: str, topic: str, *arguments: object, raw: bool = False
    ) -> tuple[dict[str, float], float]:
        """A client's figures and the server's CPU seconds meanwhile."""
        before = self.server.running.cpu_seconds()
        figures = self._client(command, topic, *arguments, raw=raw)
        return figures, self.server.running.cpu_seconds() - before

    def fill(self, size: int, count: int) -> tuple[str, Measurement]:
        """A topic with messages of `size` bytes, and how producing them went; once a session."""
        if size not in self.filled:
            topic = self.topic(f"bulk-{size}")
            window = 0 if self.server.client == "kafka" else BULK_WINDOW
            arguments = (self.limits.messages(count), size, self.limits.seconds, window)
            figures, cpu = self.run("produce", topic, *arguments)
            rate = figures["messages"] / figures["seconds"]
            self.filled[size] = topic, Measurement((rate,), figures["messages"], cpu)
        return self.filled[size]

    def close(self) -> None:
        """Drops every topic; whatever fails here is the next round's to report."""
        for topic in self.topics:
            try:
                self._client("drop", topic)
            except clients.ClientFailed:
                continue
        self.topics.clear()
        self.filled.clear()

    def _client(self, command: str, topic: str, *arguments: object, raw: bool = False) -> dict[str, float]:
        name = self.server.raw_client if raw else self.server.client
        assert name, f"{self.server.name} has no minimal client"
        return clients.run(clients.build(name), (self.server.port, command, topic, *arguments))


@dataclass(frozen=True)
class Workload:
    """`measure` runs it once. `raw`: only for brokers that the minimal Kafka client can talk to."""

    key: str
    rows: tuple[Row, ...]
    measure: Callable[[Session], Measurement]
    modes: tuple[Mode, ...] = (Mode.PAGE_CACHE, Mode.SYNCED)
    raw: bool = False

    def fits(self, server: type[Server]) -> bool:
        return not self.raw or server.raw_client is not None


# --- producing and consuming in bulk ---------------------------------------------------------------

_KILOBYTE, _SMALL = 1024, 100
_COUNTS = {_KILOBYTE: CPU_MESSAGES, _SMALL: 2_000_000}


def _produce_kilobytes(session: Session) -> Measurement:
    _, filled = session.fill(_KILOBYTE, _COUNTS[_KILOBYTE])
    megabytes = filled.values[0] * _KILOBYTE / 1e6
    return Measurement(
        (megabytes, filled.cpu_seconds / filled.messages * CPU_MESSAGES), filled.messages, filled.cpu_seconds
    )


def _produce_small(session: Session) -> Measurement:
    return session.fill(_SMALL, _COUNTS[_SMALL])[1]


def _consume(session: Session, size: int) -> Measurement:
    topic, filled = session.fill(size, _COUNTS[size])
    figures, cpu = session.run("consume", topic, int(filled.messages), size, CONSUME_SECONDS_MAX)
    return Measurement((figures["messages"] / figures["seconds"],), figures["messages"], cpu)


def _consume_kilobytes(session: Session) -> Measurement:
    read = _consume(session, _KILOBYTE)
    return Measurement((read.values[0] * _KILOBYTE / 1e6,), read.messages, read.cpu_seconds)


def _consume_small(session: Session) -> Measurement:
    return _consume(session, _SMALL)


# --- one message a request -------------------------------------------------------------------------


def _requests(session: Session, in_flight: int, count: int, *, raw: bool) -> Measurement:
    topic = session.topic(f"requests-{in_flight}")
    seconds = min(2.0, session.limits.seconds)
    figures, cpu = session.run(
        "produce", topic, session.limits.messages(count), _SMALL, seconds, in_flight, raw=raw
    )
    return Measurement((figures["messages"] / figures["seconds"],), figures["messages"], cpu)


def _single(session: Session) -> Measurement:
    return _requests(session, 5, 100_000, raw=False)


def _raw(session: Session) -> Measurement:
    return _requests(session, 100, 200_000, raw=True)


# --- latency ---------------------------------------------------------------------------------------


def _latency(session: Session, rate: int, *, raw: bool) -> Measurement:
    topic = session.topic(f"latency-{rate}-{'raw' if raw else 'client'}")
    count = session.limits.messages(2 * rate)
    figures, cpu = session.run("latency", topic, count, _SMALL, LATENCY_SECONDS_MAX, rate, raw=raw)
    return Measurement((figures["p50_us"] / 1000, figures["p99_us"] / 1000), figures["messages"], cpu)


def _latency_rows(title: str, *goals: float | None) -> tuple[Row, ...]:
    return tuple(
        Row(f"{title}, {name}", "ms", False, goal) for name, goal in zip(("p50", "p99"), goals, strict=True)
    )


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "produce-1k",
        (
            Row("produce 1 KB", "MB/s", True, 1.5),
            Row(f"server CPU for {CPU_MESSAGES:,} messages of 1 KB produced", "s", False, 1 / 3),
        ),
        _produce_kilobytes,
    ),
    Workload("consume-1k", (Row("consume 1 KB", "MB/s", True, 1.0),), _consume_kilobytes, (Mode.PAGE_CACHE,)),
    Workload("produce-100", (Row("produce 100 B", "msg/s", True),), _produce_small),
    Workload("consume-100", (Row("consume 100 B", "msg/s", True, 1.0),), _consume_small, (Mode.PAGE_CACHE,)),
    Workload("single", (Row("one message a request, 5 in flight", "requests/s", True, 3.0),), _single),
    Workload("raw", (Row("raw produce requests, 100 in flight", "requests/s", True),), _raw, raw=True),
    Workload(
        "latency-1k",
        _latency_rows("end to end at 1,000 msg/s", 0.5, 1.0),
        lambda session: _latency(session, 1_000, raw=False),
    ),
    Workload(
        "latency-10k",
        _latency_rows("end to end at 10,000 msg/s", None, None),
        lambda session: _latency(session, 10_000, raw=False),
        (Mode.PAGE_CACHE,),
    ),
    Workload(
        "raw-latency",
        _latency_rows("minimal client, end to end at 1,000 msg/s", None, None),
        lambda session: _latency(session, 1_000, raw=True),
        raw=True,
    ),
)
