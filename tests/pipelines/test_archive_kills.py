"""The driver is killed at random moments, and each record is in the table once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from postroad.gateway.dialects import DIALECTS
from postroad.pipelines.history import read_archive
from postroad.pipelines.tables import TableAddress, create_table
from postroad.testing import Node
from tests.gateway.conftest import gateway_in_thread
from tests.pipelines.archives import FORMATS, offsets_of, read_plainly, rows_of, run
from tests.spark import plain
from tests.spark.driver import home_without_zip
from tests.spark.registered import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 480  # until a driver has started and committed something, on a machine with other work
ROWS_PER_KILL = 400  # more than a driver archives before it is killed
COLUMNS = ("id", "name", "price", "full_name")
_PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
_FIELDS: dict[str, dict[str, Any]] = {
    "id": {"name": "id", "type": "long"},
    "name": {"name": "name", "type": "string"},
    "price": {"name": "price", "type": _PRICE, "default": "\u0000"},
    "full_name": {"name": "full_name", "type": "string", "default": "?"},
}
VERSIONS = [
    {"type": "record", "name": "Order", "fields": [_FIELDS[name] for name in names]}
    for names in (("id", "name"), ("id", "full_name", "price"))
]


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


@pytest.mark.spark_slow
def test_archives_of_a_schema_that_changes_are_exact_after_kills_of_the_driver(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    """A version of the schema for each kill: columns come while drivers die."""
    plain.create(node.bootstrap, topic, partitions=2)
    chance = random.Random(len(VERSIONS))
    expected: list[dict[str, Any]] = []
    with gateway_in_thread(node.bootstrap, DIALECTS) as gateway:
        for version in VERSIONS:
            orders = [order(version, len(expected) + number) for number in range(ROWS_PER_KILL)]
            writer = Writer(gateway.url, topic)
            values = [writer.avro(version, each) for each in orders]
            messages = [plain.Message(value, partition=at % 2) for at, value in enumerate(values)]
            plain.send(node.bootstrap, topic, messages)
            expected += orders
            _run_and_kill(node.bootstrap, topic, tmp_path, gateway.url, FORMATS, chance)
        source = {"valueFormat": "avro", "schemaRegistry": gateway.url}
        for name in FORMATS:
            run(spark, node.bootstrap, topic, tmp_path / name, format=name, source=source)
    wanted = [{name: each.get(name) for name in COLUMNS} for each in expected]
    for name in FORMATS:
        found = read_plainly(tmp_path / name, name)
        assert len(offsets_of(found)) == len(set(offsets_of(found))) == len(expected)
        found.sort(key=lambda row: row["id"])
        assert [{column: row[column] for column in COLUMNS} for row in found] == wanted
        assert rows_of(found) == plain.read_all(node.bootstrap, topic)


def order(version: Mapping[str, Any], number: int) -> dict[str, Any]:
    """With the fields that the version has."""
    cells = {
        "id": number,
        "name": f"n{number}",
        "price": Decimal(number) / 100,
        "full_name": f"full {number}",
    }
    return {field["name"]: cells[field["name"]] for field in version["fields"]}


def _archive_over_kills(
    spark: SparkSession, node: Node, topic: str, home: Path, formats: tuple[str, ...], kills: int
) -> None:
    plain.create(node.bootstrap, topic, partitions=2)
    chance = random.Random(kills)
    for _ in range(kills):
        plain.send(node.bootstrap, topic, plain.numbered(ROWS_PER_KILL // 2))
        plain.send(node.bootstrap, topic, plain.numbered(ROWS_PER_KILL // 2, partition=1))
        _run_and_kill(node.bootstrap, topic, home, "", formats, chance)
    expected = plain.read_all(node.bootstrap, topic)
    for name in formats:
        run(spark, node.bootstrap, topic, home / name, format=name)
        found = read_plainly(home / name, name)
        assert len(offsets_of(found)) == len(set(offsets_of(found))) == ROWS_PER_KILL * kills
        assert rows_of(found) == expected
        assert plain.of_spark(read_archive(spark, str(home / name)).collect()) == expected


def _run_and_kill(
    bootstrap: str, topic: str, home: Path, registry: str, formats: tuple[str, ...], chance: random.Random
) -> None:
    """The driver with all that it started dies a moment after every table has got something new."""
    before = {name: _archived(home, name, topic) for name in formats}
    program = [
        sys.executable,
        "-m",
        "tests.pipelines.driver",
        bootstrap,
        topic,
        str(home),
        registry,
        *formats,
    ]
    log = home / "driver.log"
    with (
        log.open("ab") as output,
        subprocess.Popen(
            program,
            cwd=Path(__file__).parents[2],
            stdout=output,
            stderr=output,
            env={**os.environ, "SPARK_HOME": str(_spark_home(home))},
            start_new_session=True,
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


def _spark_home(home: Path) -> Path:
    """For all drivers: they start many Python processes, which have to be there soon."""
    found = home / "spark-home"
    return found if found.exists() else home_without_zip(found)


def _archived(home: Path, format_: str, topic: str) -> int:
    table = create_table(TableAddress(str(home / format_), format_))
    return sum(table.ends([topic]).values())
