"""What is measured where something makes work hard: bad rows, rows without headers, one row of many.

The other side is the same work without that, or in the way in which Spark does it by itself.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

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
_JSON: Final = "concat('{\"id\": ', id, ', \"customer\": \"c', id % 1000, '\", \"total\": ', id % 500, '.5}')"
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_HEADERS: Final = "array<struct<key: string, value: binary>>"


def json_values(lab: Lab, rows: int, *, bad_every: int) -> Measured:
    """A topic of JSON, of which so many rows are bad (0: none), read as structs."""
    topic = _json_topic(lab, rows, bad_every)
    options = {"subscribe": topic, "valueFormat": "json", "valueSchema": SCHEMA, "badRows": "drop"}
    return lab.read(lab.frame(**options), rows)


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
