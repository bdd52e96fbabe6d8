"""What is measured with Spark, against whom, and the goals. The figures belong to `spark_lab`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from benchmarks import spark_edges as edges
from benchmarks.spark_lab import Lab, Measured


class Side(Enum):
    """Who did it; the values are the report's columns."""

    OURS = "postroad"
    JVM = "Kafka connector"
    NATIVE = "Spark's own"
    OTHERWISE = "otherwise"


class Figure(Enum):
    TIME = "time"
    CPU = "CPU"


@dataclass(frozen=True)
class Goal:
    """For the ratio to a side: how many times faster (or sparing of CPU) Postroad is, at least that.

    An overhead is the other way round: how many times as much as the other's, at most that.
    """

    against: Side
    figure: Figure
    bound: float
    is_overhead: bool = False


Run = Callable[[Lab, int], Measured]


@dataclass(frozen=True)
class Case:
    """`rows` of a full round; 0 where it is not about rows."""

    key: str
    title: str
    rows: int
    sides: Mapping[Side, Run]
    goals: tuple[Goal, ...]
    size: int = 100  # of a value, in bytes; 0 where the case makes its own rows

    @property
    def is_overhead(self) -> bool:
        return any(goal.is_overhead for goal in self.goals)

    def rows_of(self, scale: float) -> int:
        return int(self.rows * scale)


def _read(size: int) -> dict[Side, Run]:
    return {
        Side.OURS: lambda lab, rows: lab.read(lab.topic(size, "postroad"), rows),
        Side.JVM: lambda lab, rows: lab.read(lab.topic(size, "kafka"), rows),
        Side.NATIVE: lambda lab, rows: lab.read(lab.files(size), rows),
    }


def _write(size: int) -> dict[Side, Run]:
    return {
        Side.OURS: lambda lab, rows: lab.write(size, "postroad", rows),
        Side.JVM: lambda lab, rows: lab.write(size, "kafka", rows),
    }


def _read_goals(of_parquet: float) -> tuple[Goal, ...]:
    """A floor and a goal in time, and no more CPU than a tenth above the connector's."""
    return (
        Goal(Side.JVM, Figure.TIME, 1.0),
        Goal(Side.JVM, Figure.TIME, 1.5),
        Goal(Side.JVM, Figure.CPU, 0.9),
        Goal(Side.NATIVE, Figure.TIME, of_parquet),
    )


_WRITE_GOALS = (Goal(Side.JVM, Figure.CPU, 1.0),)

# Files hold all rows of a topic; what is written is a part of them.
ROWS = {100: 4_000_000, 1024: 1_000_000}

CASES = (
    Case("read-100", "read 100 B", ROWS[100], _read(100), _read_goals(0.5), 100),
    Case("read-1k", "read 1 KB", ROWS[1024], _read(1024), _read_goals(0.7), 1024),
    Case("write-100", "write 100 B", 1_000_000, _write(100), _WRITE_GOALS, 100),
    Case("write-1k", "write 1 KB", 400_000, _write(1024), _WRITE_GOALS, 1024),
    Case(
        "archive",
        "archive 1 KB",
        ROWS[1024],
        {
            Side.OURS: lambda lab, rows: lab.archive(1024, rows),
            Side.NATIVE: lambda lab, rows: lab.file_sink(1024, rows),
        },
        (Goal(Side.NATIVE, Figure.TIME, 0.8),),
        1024,
    ),
    Case(
        "trigger",
        "trigger",
        0,
        {
            Side.OURS: lambda lab, _: lab.triggers("postroad"),
            Side.NATIVE: lambda lab, _: lab.triggers("rate"),
        },
        (Goal(Side.NATIVE, Figure.TIME, 1.5, is_overhead=True),),
    ),
    Case(
        "json-bad",
        "JSON, 1 % bad (otherwise: none)",
        1_000_000,
        {
            Side.OURS: lambda lab, rows: edges.json_values(lab, rows, bad_every=100),
            Side.OTHERWISE: lambda lab, rows: edges.json_values(lab, rows, bad_every=0),
        },
        (Goal(Side.OTHERWISE, Figure.TIME, 0.5),),
        0,
    ),
    Case(
        "avro",
        "Avro by a registry (connector: from_avro, without one)",
        500_000,
        {
            Side.OURS: edges.avro_values,
            Side.JVM: edges.avro_in_jvm,
        },
        (Goal(Side.JVM, Figure.TIME, 1.0),),
        0,
    ),
    Case(
        "sink-headers",
        "write without headers: empty lists (otherwise: nulls)",
        500_000,
        {
            Side.OURS: lambda lab, rows: edges.sink_without_headers(lab, rows, has_nulls=False),
            Side.OTHERWISE: lambda lab, rows: edges.sink_without_headers(lab, rows, has_nulls=True),
        },
        (),
        0,
    ),
    Case(
        "replay-headers",
        "replay without headers",
        500_000,
        {Side.OURS: lambda lab, rows: edges.replay(lab, rows)},
        (),
        0,
    ),
    Case(
        "archive-json",
        "archive with JSON columns (otherwise: without)",
        500_000,
        {
            Side.OURS: lambda lab, rows: edges.archive_json(lab, rows, has_columns=True),
            Side.OTHERWISE: lambda lab, rows: edges.archive_json(lab, rows, has_columns=False),
        },
        (),
        0,
    ),
    Case(
        "one-row",
        "one row by partition and offset (otherwise: no filters told)",
        1_000_000,
        {
            Side.OURS: lambda lab, rows: edges.some_rows(lab, rows, edges.ONE_ROW, pushes=True),
            Side.OTHERWISE: lambda lab, rows: edges.some_rows(lab, rows, edges.ONE_ROW, pushes=False),
        },
        (),
        0,
    ),
    Case(
        "one-minute",
        "one minute by timestamp (otherwise: no filters told)",
        1_000_000,
        {
            Side.OURS: lambda lab, rows: edges.some_rows(lab, rows, edges.ONE_MINUTE, pushes=True),
            Side.OTHERWISE: lambda lab, rows: edges.some_rows(lab, rows, edges.ONE_MINUTE, pushes=False),
        },
        (),
        0,
    ),
    Case(
        "sql-count",
        "postroad sql, count(*) (otherwise: by Spark)",
        50_000,
        {
            Side.OURS: lambda lab, rows: edges.sql_count(lab, rows, in_spark=False),
            Side.OTHERWISE: lambda lab, rows: edges.sql_count(lab, rows, in_spark=True),
        },
        (),
        0,
    ),
)
