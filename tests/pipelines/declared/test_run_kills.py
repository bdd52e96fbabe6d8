"""A declared pipeline is killed at random moments, and each row is in each place once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postroad.pipelines.declared.declaration import read
from postroad.pipelines.declared.run import run
from postroad.testing import Node
from tests.pipelines.declared.shop import check, create_topics, declare, orders
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 240  # until a driver has started and all steps have done something, on a machine with other work
KILLS = 10
ORDERS_PER_KILL = 60
ORDERS_PER_BATCH = 20


@pytest.mark.spark_slow
def test_pipeline_is_exact_after_ten_kills(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    create_topics(node.bootstrap, topic)
    file = declare(tmp_path, topic, ORDERS_PER_BATCH)
    chance = random.Random(KILLS)
    for kill in range(KILLS):
        plain.send(node.bootstrap, topic, orders(kill * ORDERS_PER_KILL, ORDERS_PER_KILL))
        _run_and_kill(node.bootstrap, f"{topic}-large", file, chance)
    run(spark, read(file), node.bootstrap, once=True)
    check(node.bootstrap, topic, tmp_path, KILLS * ORDERS_PER_KILL)


def _run_and_kill(bootstrap: str, last: str, file: Path, chance: random.Random) -> None:
    """All of it dies some moment after the last of its steps has written something new."""
    before = len(plain.read_all(bootstrap, last))
    log = file.with_name("driver.log")
    program = [sys.executable, "-m", "postroad.pipelines", "run", str(file), "-b", bootstrap]
    small = ["--master", "local[2]", "--conf", "spark.driver.memory=1g"]
    with (
        log.open("ab") as output,
        subprocess.Popen([*program, *small], stdout=output, stderr=output, start_new_session=True) as driver,
    ):
        try:
            deadline = time.monotonic() + PATIENCE_S
            while len(plain.read_all(bootstrap, last)) == before:
                assert driver.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < deadline, log.read_text()[-4000:]
                time.sleep(0.2)
            time.sleep(2 * chance.random())
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
