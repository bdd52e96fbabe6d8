"""Transactions in the benchmark: a real node commits what the client sends, and each row has its figure."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.servers import Mode, Postroad
from benchmarks.session import Limits, Session
from benchmarks.transactions import WORKLOADS
from benchmarks.workload import Workload

pytestmark = pytest.mark.skipif(
    not shutil.which("cc") or not Path("/usr/include/librdkafka/rdkafka.h").exists(),
    reason="no C compiler or no librdkafka here (Debian: gcc, libc6-dev, librdkafka-dev)",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postroad]:
    node = Postroad(Mode.PAGE_CACHE, tmp_path_factory.mktemp("bench") / "node")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        node.start()
        yield node
        node.stop()


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.key)
def test_every_row_has_a_figure(server: Postroad, workload: Workload) -> None:
    session = Session(server, f"t-{workload.key}", Limits(scale=0.005, seconds=20))
    try:
        found = workload.measure(session)
    finally:
        session.close()
    assert len(found.values) == len(workload.rows)
    assert all(value > 0 for value in found.values)
    assert found.messages >= 100
