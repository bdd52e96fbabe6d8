"""The examples for Spark run as they stand and print what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postroad.testing import Node
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY = Path(__file__).parents[2] / "examples/spark"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PRINTED = {
    "windowed_counts": [
        '{"minute":"10:00","page":"/cart","count":1}',
        '{"minute":"10:00","page":"/home","count":2}',
        '{"minute":"10:01","page":"/home","count":1}',
    ],
    "join_streams": [
        '{"id":"a","total":30,"state":"paid"}',
        '{"id":"b","total":12,"state":"not paid"}',
        '{"id":"late","total":7,"state":"paid"}',
    ],
    "failed_logins": ["three failures in a row: mallory"],
}


@pytest.fixture
def _examples(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Iterator[None]:
    """They can be imported; the setting that one of them changes is put back."""
    monkeypatch.syspath_prepend(str(DIRECTORY))
    before = spark.conf.get(PROVIDER)
    assert before is not None
    yield
    spark.conf.set(PROVIDER, before)


@pytest.mark.spark_slow
@pytest.mark.slow
@pytest.mark.usefixtures("_examples")
@pytest.mark.parametrize("name", PRINTED)
def test_example_prints_what_it_promises(
    name: str, spark: SparkSession, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark import cloudpickle

    example = import_module(name)
    cloudpickle.register_pickle_by_value(example)  # as of a program that is run: workers can't import it
    example.run(spark, node.bootstrap, str(tmp_path))
    assert capsys.readouterr().out.splitlines() == PRINTED[name]


def test_every_example_is_run() -> None:
    names = {path.stem for path in DIRECTORY.glob("*.py")}
    assert names == {*PRINTED, "sample_data"}


@pytest.mark.spark_slow
def test_declared_pipeline_fills_its_table_and_its_topic(postroad: Node, tmp_path: Path) -> None:
    for topic in ("orders", "large-orders"):
        plain.create(postroad.bootstrap, topic)
    orders = [(1, "ann", 30), (2, "bob", 250), (3, "ann", 120)]
    messages = [
        plain.Message(b'{"id": "%d", "customer": "%s", "total": %d}' % (number, who.encode(), total))
        for number, who, total in orders
    ]
    plain.send(postroad.bootstrap, "orders", messages)
    project = declared_project(tmp_path, postroad.bootstrap)
    for _ in range(2):  # the second run finds nothing new
        run_declared(project)
    found = plain.read_all(postroad.bootstrap, "large-orders")
    assert [row.value for row in found] == [b'{"id":"2","total":250}', b'{"id":"3","total":120}']


def declared_project(home: Path, bootstrap: str) -> Path:
    """The project as it stands, with its two addresses replaced."""
    project = home / "declarative"
    (project / "transformations").mkdir(parents=True)
    source = DIRECTORY / "declarative"
    for path in source.rglob("*.py"):
        (project / path.relative_to(source)).write_text(path.read_text())
    spec = (source / "spark-pipeline.yml").read_text()
    spec = spec.replace("file:///tmp/postroad-shop", (home / "storage").as_uri())
    (project / "spark-pipeline.yml").write_text(spec.replace("127.0.0.1:9092", bootstrap))
    return project


def run_declared(project: Path) -> None:
    program = str(Path(sys.executable).with_name("spark-pipelines"))
    metastore = ["--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false"]
    command = [program, "run", *metastore, "--spec", "spark-pipeline.yml"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
