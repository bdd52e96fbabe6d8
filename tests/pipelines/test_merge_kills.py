"""The driver is killed at random moments, and each key's row is what its last change says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from postroad.pipelines.merge import MergeSettings, merge
from postroad.pipelines.tables.derived import open_derived
from postroad.testing import Node
from tests.pipelines.merge_driver import settings_of
from tests.pipelines.merges import read_merged, values_of
from tests.spark import plain
from tests.spark.plain import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 180  # until a driver has started and committed something, on a machine with other work
KILLS = 10
CHANGES_PER_KILL = 300  # more than a driver merges before it is killed
KEYS = 80


@pytest.mark.spark_slow
def test_merges_are_exact_after_ten_kills_of_the_driver(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    rows, events = f"{topic}-rows", f"{topic}-events"
    plain.create(node.bootstrap, rows, partitions=2, cleanup_policy="compact")
    plain.create(node.bootstrap, events, partitions=2)
    chance = random.Random(KILLS)
    expected: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
    both = settings_of(node.bootstrap, rows, events, tmp_path, once=True, buckets=3)
    for kill in range(KILLS):
        plain.send(node.bootstrap, rows, [_row(chance, expected[0], kill) for _ in range(CHANGES_PER_KILL)])
        plain.send(
            node.bootstrap, events, [_event(chance, expected[1], kill) for _ in range(CHANGES_PER_KILL)]
        )
        _run_and_kill(node.bootstrap, rows, events, tmp_path, both, chance)
    for settings, found in zip(both, expected, strict=True):
        merge(spark, settings)
        table = read_merged(Path(settings.to), settings.format)
        assert len(table) == len(found)
        assert values_of(table) == sorted(found.values(), key=str)
        assert _merged(settings) == KILLS * CHANGES_PER_KILL
        assert merge(spark, settings).steps == 0


def _row(chance: random.Random, expected: dict[int, Any], kill: int) -> Message:
    number = chance.randrange(KEYS)
    key = b"k%d" % number
    if chance.random() < 0.2:
        expected.pop(number, None)
        return Message(None, key, number % 2)
    row = {"n": chance.randrange(10_000), f"new{kill // 4}": kill}  # columns come while it runs
    expected[number] = row
    return Message(json.dumps(row).encode(), key, number % 2)


def _event(chance: random.Random, expected: dict[int, Any], kill: int) -> Message:
    number = chance.randrange(KEYS)
    key = {"id": number // 2, "region": ("eu", "us")[number % 2]}
    before = expected.get(number)
    if before is not None and chance.random() < 0.2:
        expected.pop(number)
        event: dict[str, Any] = {"op": "d", "before": before, "after": None}
    else:
        row = {**key, "n": chance.randrange(10_000), f"new{kill // 4}": kill}
        event = {"op": "u" if before else "c", "before": before, "after": row}
        expected[number] = row
    return Message(
        json.dumps({**event, "ts_ms": 1_700_000_000_000}).encode(), json.dumps(key).encode(), number % 2
    )


def _run_and_kill(
    bootstrap: str, rows: str, events: str, home: Path, both: list[MergeSettings], chance: random.Random
) -> None:
    """The driver with all that it started dies a moment after both tables have got something new."""
    before = [_merged(settings) for settings in both]
    program = [sys.executable, "-m", "tests.pipelines.merge_driver", bootstrap, rows, events, str(home)]
    log = home / "driver.log"
    with (
        log.open("ab") as output,
        subprocess.Popen(
            program, cwd=Path(__file__).parents[2], stdout=output, stderr=output, start_new_session=True
        ) as driver,
    ):
        try:
            deadline = time.monotonic() + PATIENCE_S
            while any(_merged(settings) <= had for settings, had in zip(both, before, strict=True)):
                assert driver.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < deadline, "the driver merged nothing"
                time.sleep(0.1)
            time.sleep(chance.random())
        finally:
            os.killpg(driver.pid, signal.SIGKILL)


def _merged(settings: MergeSettings) -> int:
    table = open_derived(settings.address)
    return sum(table.load(["end/0", "end/1"]).notes.values()) if table.is_there() else 0
