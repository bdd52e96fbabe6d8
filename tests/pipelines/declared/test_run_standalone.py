"""A declared pipeline on a master and two workers: rows are in each place once, whichever executors die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from postroad.testing import Node
from tests.pipelines.declared.shop import check, create_topics, declare, orders
from tests.spark import plain
from tests.spark.driver import end, environment_of_spark, home_without_zip
from tests.spark.standalone import CONFIG, Standalone, end_with_parent, standalone, wait_for

PATIENCE_S = 480.0
ORDERS = 120
ORDERS_PER_BATCH = 60
KILLED_IN = ("orders", "paid")  # when the step's table gets its first files


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    home = tmp_path / "standalone"
    home.mkdir()
    with standalone(home) as running:
        yield running


@contextmanager
def running(master: str, bootstrap: str, file: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`postroad pipeline run --once`, until the block ends."""
    settings = {**CONFIG, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words = [sys.executable, "-m", "postroad.pipelines", "run", str(file), "-b", bootstrap, "--once"]
    home = {"SPARK_HOME": str(home_without_zip(log.with_name("spark-home")))}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*words, "--master", master, *confs],
            stdout=output,
            stderr=output,
            env={**os.environ, **environment_of_spark(), **home},
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    try:
        yield process
    finally:
        end(process)


def kill_executors(cluster: Standalone) -> set[int]:
    found = set(wait_for(cluster.executors, PATIENCE_S))
    for executor in found:
        with suppress(ProcessLookupError):
            os.kill(executor, signal.SIGKILL)
    return found


@pytest.mark.spark_slow
def test_pipeline_is_exact_on_two_workers_whose_executors_are_killed(
    cluster: Standalone, node: Node, topic: str, tmp_path: Path
) -> None:
    create_topics(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, orders(0, ORDERS))
    file, log = declare(tmp_path, topic, ORDERS_PER_BATCH), tmp_path / "driver.log"
    killed: set[int] = set()
    with running(cluster.url, node.bootstrap, file, log) as driver:

        def while_it_runs(what: Callable[[], object]) -> Callable[[], object]:
            def ask() -> object:
                assert driver.poll() is None, log.read_text()[-4000:]
                return what()

            return ask

        for step in KILLED_IN:
            files = (tmp_path / "lake" / step).rglob
            wait_for(while_it_runs(lambda: list(files("*.parquet"))), PATIENCE_S)  # noqa: B023
            killed |= kill_executors(cluster)
        assert driver.wait(PATIENCE_S) == 0, log.read_text()[-4000:]
    assert len(killed) > 2, "no executor was replaced"
    check(node.bootstrap, topic, tmp_path, ORDERS)
