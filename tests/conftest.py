"""What all tests share.

Hypothesis draws the same examples each time (seed + commit = bug report). Ctrl-C means what it means on a
terminal: a shell that runs the tests in the background has them, and the commands they start, ignore it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from postroad.testing import Node, node
from tests import shared_node

settings.register_profile(
    "postroad", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("postroad")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postroad_session() -> Iterator[Node]:
    with node(shared_node.SETTINGS) as running:
        yield running
