"""The broker that the client tests talk to, and topics of their own for each test."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests import shared_node

from .wait import until

ELSEWHERE = os.environ.get("POSTROAD_TEST_BOOTSTRAP")

# KIP-848 members learn of a rebalance at their next heartbeat; the server sets its rhythm (default 5 s).
SHORTEST_SESSION_MS = 2000  # Kafka's is 6 s, for which a test would have to wait
BROKER_CONFIG = {
    **shared_node.SETTINGS,
    "groups.consumer_heartbeat_ms": 300,
    "groups.session_min_ms": SHORTEST_SESSION_MS,
}


@dataclass(frozen=True)
class Broker:
    """Where the clients connect. `ours` is false when it is another broker, named by the environment."""

    bootstrap: str
    ours: bool

    @property
    def host(self) -> str:
        return self.bootstrap.rsplit(":", 1)[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap.rsplit(":", 1)[1])


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    if ELSEWHERE:
        yield Broker(ELSEWHERE, ours=False)
        return
    from postroad.testing import node

    with node(config=BROKER_CONFIG) as running:
        yield Broker(running.bootstrap, ours=True)
        written = running.log_file.read_text()
    assert "Traceback" not in written, f"the node met an error that it did not expect:\n{written}"


@pytest.fixture
def ours(broker: Broker) -> Broker:
    """The broker, in a test of what only Postroad has."""
    if not broker.ours:
        pytest.skip("only Postroad has this")
    return broker


@pytest.fixture(scope="session")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def unused_name(request: pytest.FixtureRequest) -> str:
    """A name for a topic or a group that nothing else uses and that says which test it belongs to."""
    return unique(request.node.name)


def unique(label: str) -> str:
    return f"{re.sub('[^a-zA-Z0-9]+', '-', label)[:120].strip('-')}-{uuid.uuid4().hex[:8]}"


TopicMaker = Callable[..., str]


@pytest.fixture
def new_topic(admin: AdminClient, request: pytest.FixtureRequest) -> TopicMaker:
    """`new_topic(partitions=1, **{"retention.ms": …})` creates a topic and gives its name."""

    def create(partitions: int = 1, name: str | None = None, **config: str | int) -> str:
        return create_topic(admin, name or unique(request.node.name), partitions, **config)

    return create


def create_topic(admin: AdminClient, name: str, partitions: int, **config: str | int) -> str:
    settings = {key: str(value) for key, value in config.items()}
    spec = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
    for done in admin.create_topics([spec]).values():
        done.result(60)
    until(lambda: _is_led(admin, name, partitions), f"{name} has {partitions} leaders")
    return name


@pytest.fixture
def topic(new_topic: TopicMaker) -> str:
    """A topic of one partition."""
    return new_topic()


@pytest.fixture
def group(unused_name: str) -> str:
    return unused_name


def _is_led(admin: AdminClient, name: str, partitions: int) -> bool:
    seen = admin.list_topics(name, timeout=10).topics[name]
    return len(seen.partitions) == partitions and all(p.leader >= 0 for p in seen.partitions.values())
