"""What is measured where something makes work hard: bad rows, rows without headers, one row of many.

The other side is the same work without that, or in the way in which Spark does it by itself.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.spark_lab import PARTITIONS, Lab, Measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA: Final = "id bigint, customer string, total double"
FIRST_MS: Final = 1_700_000_000_000
STEP_MS: Final = 10  # between two rows
ONE_ROW: Final = "partition = 1 and offset = 1234"
_MINUTE_MS: Final = FIRST_MS + 5_000_000
ONE_MINUTE: Final = (
    f"timestamp >= timestamp_millis({_MINUTE_MS}) and timestamp < timestamp_millis({_MINUTE_MS + 60_000})"
)
SQL_WITHIN_S: Final = 300.0
GATEWAY_WITHIN_S: Final = 60.0
AVRO: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "total", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "lines", "type": {"type": "array", "items": "string"}},
    ],
}
_JSON: Final = "concat('{\"id\": ', id, ', \"customer\": \"c', id % 1000, '\", \"total\": ', id % 500, '.5}')"
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_HEADERS: Final = "array<struct<key: string, value: binary>>"


def json_values(lab: Lab, rows: int, *, bad_every: int) -> Measured:
    """A topic of JSON, of which so many rows are bad (0: none), read as structs."""
    topic = _json_topic(lab, rows, bad_every)
    options = {"subscribe": topic, "valueFormat": "json", "valueSchema": SCHEMA, "badRows": "drop"}
    return lab.read(lab.frame(**options), rows)


def avro_values(lab: Lab, rows: int) -> Measured:
    """Messages with the id of their schema, read as structs by a gateway's registry."""
    with registry(lab.bootstrap) as url:
        topic = _avro_topic(lab, rows, url)
        return lab.read(lab.frame(subscribe=topic, valueFormat="avro", schemaRegistry=url), rows)


def avro_in_jvm(lab: Lab, rows: int) -> Measured:
    """The same by Spark's own function, which is told the schema and nothing of ids."""
    from pyspark.sql import functions as sf
    from pyspark.sql.avro.functions import from_avro

    with registry(lab.bootstrap) as url:
        topic = _avro_topic(lab, rows, url)
    options = {"kafka.bootstrap.servers": lab.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    frame = lab.spark.read.format("kafka").options(**options).load()
    body = sf.expr("substring(value, 6)")
    return lab.read(frame.withColumn("value", from_avro(body, json.dumps(AVRO))), rows)


@contextmanager
def registry(bootstrap: str) -> Iterator[str]:
    """A gateway's address."""
    with tempfile.TemporaryDirectory() as directory:
        ready = Path(directory) / "ready.json"
        command = [sys.executable, "-m", "postroad", "gateway", "--bootstrap", bootstrap]
        gateway = subprocess.Popen([*command, "--http", "127.0.0.1:0", "--ready-file", str(ready)])
        try:
            deadline = time.monotonic() + GATEWAY_WITHIN_S
            while not ready.exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("the gateway did not start")
                time.sleep(0.05)
            yield str(json.loads(ready.read_text())["url"])
        finally:
            gateway.terminate()
            gateway.wait(GATEWAY_WITHIN_S)


def _avro_topic(lab: Lab, rows: int, url: str) -> str:
    """Made when it is first asked for: orders with a text that may be null, a list and a time."""
    topic = f"avro-{rows}"
    request = urllib.request.Request(
        f"{url}/subjects/{topic}-value/versions",
        json.dumps({"schema": json.dumps(AVRO)}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=GATEWAY_WITHIN_S) as answer:
        head = b"\0" + json.loads(answer.read())["id"].to_bytes(4, "big")

    def written(batches: Iterator[Any]) -> Iterator[Any]:
        import fastavro
        import pyarrow as pa

        schema = fastavro.parse_schema(AVRO)
        for batch in batches:
            values = []
            for number in batch.column("id").to_pylist():
                out = io.BytesIO(head)
                out.seek(0, io.SEEK_END)
                fastavro.schemaless_writer(out, schema, _order(number))
                values.append(out.getvalue())
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], ["value"])

    lab.fill_once(
        topic, lambda: lab.spark.range(0, rows, 1, 2 * PARTITIONS).mapInArrow(written, "value binary")
    )
    return topic


def _order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": None if number % 10 == 0 else f"customer {number % 1000}",
        "total": number % 500 + 0.5,
        "at": FIRST_MS + number,
        "state": "PAID" if number % 3 else "NEW",
        "lines": [f"article {line}" for line in range(number % 4)],
    }


def archive_json(lab: Lab, rows: int, *, has_columns: bool) -> Measured:
    return lab.archive_topic(_json_topic(lab, rows, 0), rows, json_columns=has_columns)


def sink_without_headers(lab: Lab, rows: int, *, has_nulls: bool) -> Measured:
    """A column of headers in which no row has any: null, or an empty list."""
    headers = f"cast({'null' if has_nulls else 'array()'} as {_HEADERS}) as headers"
    made = lab.spark.range(0, rows, 1, 2).selectExpr("binary(string(id)) as value", headers)
    return lab.write_frame(made, rows)


def replay(lab: Lab, rows: int) -> Measured:
    """Messages without headers are replayed."""
    from postroad.pipelines.replay import replay as run
    from postroad.pipelines.replay_source import ReplaySettings

    source = _json_topic(lab, rows, 0)
    with lab.new_topic() as topic:
        settings = ReplaySettings(lab.bootstrap, [source], topic)
        return lab.measure(rows, lambda: run(lab.spark, settings))


def some_rows(lab: Lab, rows: int, where: str, *, pushes: bool) -> Measured:
    """Few of the rows, with the query's filters told to the source or not."""
    topic = f"timed-{rows}"
    time = f"timestamp_millis({FIRST_MS} + id * {STEP_MS}) as timestamp"
    lab.fill_once(
        topic, lambda: lab.spark.range(0, rows, 1, 1).selectExpr("binary(string(id)) as value", time)
    )
    lab.spark.conf.set(_PUSHDOWN, str(pushes).lower())
    try:
        return lab.measure(rows, lambda: lab.frame(subscribe=topic).where(where).collect())
    finally:
        lab.spark.conf.unset(_PUSHDOWN)


def sql_count(lab: Lab, rows: int, *, in_spark: bool) -> Measured:
    """The command as people call it, from its start to its end."""
    query = f"select count(*) from `{_json_topic(lab, rows, 0)}` where true"
    if not in_spark:
        query = query.removesuffix(" where true")
    command = [sys.executable, "-m", "postroad", "sql", query, "--bootstrap", lab.bootstrap]
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.whole", *command],
        check=True,
        capture_output=True,
        timeout=SQL_WITHIN_S,
    )
    seconds, cpu_seconds = map(float, told.stdout.split())
    return Measured(seconds, cpu_seconds, rows)


def _json_topic(lab: Lab, rows: int, bad_every: int) -> str:
    """Made when it is first asked for."""
    topic = f"json-{rows}-{bad_every}"
    bad = f"when id % {bad_every} = 7 then 'no json'" if bad_every else "when false then ''"

    def made() -> DataFrame:
        value = f"case {bad} else {_JSON} end"
        return lab.spark.range(0, rows, 1, 2 * PARTITIONS).selectExpr(f"binary({value}) as value")

    lab.fill_once(topic, made)
    return topic
