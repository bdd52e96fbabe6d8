"""How Spark finds the format, what that costs, and Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from postroad.testing import Node
from tests.spark.plain import create, numbered, read_all, send

SRC = Path(__file__).parents[2] / "src"

CONNECT = """
import sys
from pyspark.sql import SparkSession

bootstrap, topic, home = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
rows = spark.read.format("postroad").options(**options).load().collect()
print("batch", sorted(row["offset"] for row in rows) == list(range(100)))
query = (
    spark.readStream.format("postroad").options(**options, maxOffsetsPerTrigger="60").load()
    .writeStream.format("parquet").option("checkpointLocation", home + "/checkpoint")
    .trigger(availableNow=True).start(home + "/rows")
)
query.awaitTermination(120)
print("stream", spark.read.parquet(home + "/rows").count())
(
    spark.read.format("postroad").options(**options).load().select("key", "value")
    .write.format("postroad").option("kafka.bootstrap.servers", bootstrap).option("topic", topic + "-copy")
    .mode("append").save()
)
try:
    spark.read.format("postroad").options(**options, strtingOffsets="x").load().collect()
except Exception as error:
    print("did you mean startingOffsets?" in str(error))
spark.stop()
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *environment.pop("flags", "").split(), "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_module_that_spark_imports_is_cheap() -> None:
    """Spark imports it when a session first meets any Python data source, even if it isn't this one."""
    code = """
import sys
import pyspark.sql.datasource, pyspark.sql.types
before = set(sys.modules)
import pyspark_postroad
print(pyspark_postroad.DefaultSource.name())
new = sorted(set(sys.modules) - before)
print(*(name for name in new if "." not in name or name.startswith("postroad.spark")))
"""
    assert run(code).split() == [
        "postroad",
        "postroad",
        "postroad.spark",
        "postroad.spark.source",
        "pyspark_postroad",
    ]


def test_room_says_what_to_install() -> None:
    """Without site-packages there is neither PySpark nor anything else."""
    code = f"""
import sys
sys.path.insert(0, {str(SRC)!r})
import pyspark_postroad
print(hasattr(pyspark_postroad, "DefaultSource"))
try:
    import postroad.spark
except Exception as error:
    print(error)
"""
    assert run(code, flags="-S -E").splitlines() == [
        "False",
        "The data pipeline needs PySpark and Arrow: pip install 'postroad[spark]'",
    ]


@pytest.mark.spark_slow
def test_reads_streams_and_writes_over_spark_connect(node: Node, topic: str, tmp_path: Path) -> None:
    create(node.bootstrap, topic)
    create(node.bootstrap, f"{topic}-copy")
    send(node.bootstrap, topic, numbered(100))
    said = run(
        CONNECT,
        node.bootstrap,
        topic,
        str(tmp_path),
        SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_PYTHON=sys.executable,
    )
    assert said.splitlines() == ["batch True", "stream 100", "True"]
    assert len(read_all(node.bootstrap, f"{topic}-copy")) == 100
