"""Two clusters of one node each for all tests of this directory; topics of their own for each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from postroad.testing import Node
from postroad.testing import node as start_node
from tests import shared_node


@pytest.fixture(scope="session")
def west() -> Iterator[Node]:
    with start_node(shared_node.SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def east() -> Iterator[Node]:
    with start_node(shared_node.SETTINGS) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A topic's name that nobody else uses."""
    return f"t-{uuid.uuid4().hex[:10]}"
