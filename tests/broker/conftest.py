"""Nodes for the broker's tests: one shared by all that leave it unharmed, or one of a test's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.broker.harness import Running, running_node
from tests.shared_node import CHECK_MS
from tests.simulator.simulated_node import SimulatedNode, simulated_node

SHARED: Final[dict[str, Any]] = {
    "durability_flush": "os",
    "storage_retention_check_ms": CHECK_MS,
}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("shared")
    with running_node(home, **SHARED) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """`start(limits_idle_ms=300)`: a node with these settings, stopped at the end."""
    numbers = count()
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            running_node(tmp_path / f"node-{next(numbers)}", **settings)
        )


@pytest.fixture
def simulate() -> Iterator[Callable[..., SimulatedNode]]:
    """`simulate(limits_idle_ms=60_000)`: a node on virtual time, for promises about time."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(simulated_node(**settings))


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic's name that no other test uses; nobody has created it."""
    return re.sub(r"[^a-zA-Z0-9-]", "-", request.node.name)[:249]
