"""One server during one round: its topics and queues, and the clients that are run against it.

The server's CPU time is taken around every run.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import clients
from benchmarks.servers import Server

QUEUE_CLIENT = "queue_client"
BULK_WINDOW = 1000  # messages unacknowledged in bulk, for brokers that acknowledge one by one


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
    """One server during one round: its topics and queues, and what has been produced into them."""

    server: Server
    tag: str
    limits: Limits
    topics: list[str] = field(default_factory=list)
    queues: list[tuple[str, str]] = field(default_factory=list)  # with the clients that made them
    filled: dict[int, tuple[str, Measurement]] = field(default_factory=dict)

    def topic(self, name: str, partitions: int = 1) -> str:
        """A new topic; it is dropped when the session ends."""
        topic = f"{name}-{self.tag}"
        self._client("create", topic, 0, 100, 10, self.server.replicas, partitions)
        self.topics.append(topic)
        return topic

    def leader(self, topic: str) -> dict[str, float]:
        """Who leads partition 0 of the topic: `node`, its `port`, and how many replicas are `in_sync`."""
        return self._client("leader", topic)

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

    def queue(self, name: str, client: str = QUEUE_CLIENT, partitions: int = 1) -> str:
        """A new queue; it is dropped when the session ends. `client` names an attribute of the server."""
        queue = f"{name}-{self.tag}"
        options = {"kind": self.server.queue_kind, "partitions": partitions, "replicas": self.server.replicas}
        self.run_queue("create", queue, client, **options)
        self.queues.append((queue, client))
        return queue

    def run_queue(
        self, command: str, queue: str, client: str = QUEUE_CLIENT, /, **options: object
    ) -> tuple[dict[str, float], float]:
        """As `run`, for the queue clients."""
        before = self.server.running.cpu_seconds()
        figures = clients.run(self.queue_program(client), self.queue_arguments(command, queue, **options))
        return figures, self.server.running.cpu_seconds() - before

    def queue_program(self, client: str = QUEUE_CLIENT) -> Path:
        program = getattr(self.server, client)
        assert program, f"{self.server.name} has no such queues"
        return clients.build(program)

    def queue_arguments(self, command: str, queue: str, **options: object) -> list[object]:
        options = {**self.server.queue_options(), **options}
        return [self.server.port, command, queue, *(f"{name}={value}" for name, value in options.items())]

    def close(self) -> None:
        """Drops every topic and queue; whatever fails here is the next round's to report."""
        for topic in self.topics:
            with contextlib.suppress(clients.ClientFailed):
                self._client("drop", topic)
        for queue, client in self.queues:
            with contextlib.suppress(clients.ClientFailed):
                self.run_queue("drop", queue, client)
        self.topics.clear()
        self.queues.clear()
        self.filled.clear()

    def _client(self, command: str, topic: str, *arguments: object, raw: bool = False) -> dict[str, float]:
        name = self.server.raw_client if raw else self.server.client
        assert name, f"{self.server.name} has no such client"
        return clients.run(
            clients.build(name),
            (self.server.port, command, topic, *arguments),
            self.server.client_environment(),
        )
