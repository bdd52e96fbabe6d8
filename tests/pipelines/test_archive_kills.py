"""The driver is killed at random moments, and each record is in the table once."""

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

from postroad.pipelines.history import read_archive
from postroad.pipelines.tables import TableAddress, create_table
from postroad.testing import Node
from tests.pipelines.archives import FORMATS, offsets_of, read_plainly, rows_of, run
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 180  # until a driver has started and committed something, on a machine with other work
ROWS_PER_KILL = 400  # more than a driver archives before it is killed


@pytest.mark.spark_slow
def test_archive_is_exact_after_two_kills_of_the_driver(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    _archive_over_kills(spark, node, topic, tmp_path, ("delta",), kills=2)


@pytest.mark.spark_slow
def test_archives_of_all_formats_are_exact_after_twenty_kills_of_the_driver(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    _archive_over_kills(spark, node, topic, tmp_path, FORMATS, kills=20)


def _archive_over_kills(
    spark: SparkSession, node: Node, topic: str, home: Path, formats: tuple[str, ...], kills: int
) -> None:
    plain.create(node.bootstrap, topic, partitions=2)
    chance = random.Random(kills)
    for _ in range(kills):
        plain.send(node.bootstrap, topic, plain.numbered(ROWS_PER_KILL // 2))
        plain.send(node.bootstrap, topic, plain.numbered(ROWS_PER_KILL // 2, partition=1))
        _run_and_kill(node.bootstrap, topic, home, formats, chance)
    expected = plain.read_all(node.bootstrap, topic)
    for name in formats:
        run(spark, node.bootstrap, topic, home / name, format=name)
        found = read_plainly(home / name, name)
        assert len(offsets_of(found)) == len(set(offsets_of(found))) == ROWS_PER_KILL * kills
        assert rows_of(found) == expected
        assert plain.of_spark(read_archive(spark, str(home / name)).collect()) == expected


def _run_and_kill(
    bootstrap: str, topic: str, home: Path, formats: tuple[str, ...], chance: random.Random
) -> None:
    """The driver with all that it started dies a moment after every table has got something new."""
    before = {name: _archived(home, name, topic) for name in formats}
    program = [sys.executable, "-m", "tests.pipelines.driver", bootstrap, topic, str(home), *formats]
    log = home / "driver.log"
    with (
        log.open("ab") as output,
        subprocess.Popen(
            program, cwd=Path(__file__).parents[2], stdout=output, stderr=output, start_new_session=True
        ) as driver,
    ):
        try:
            deadline = time.monotonic() + PATIENCE_S
            while any(_archived(home, name, topic) <= had for name, had in before.items()):
                assert driver.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < deadline, "the driver archived nothing"
                time.sleep(0.1)
            time.sleep(chance.random())
        finally:
            os.killpg(driver.pid, signal.SIGKILL)


def _archived(home: Path, format_: str, topic: str) -> int:
    table = create_table(TableAddress(str(home / format_), format_))
    return sum(table.ends([topic]).values())
