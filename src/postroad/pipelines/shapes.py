"""Rows in the shape in which the JVM hands them to Python without going over all of them for each.

Spark measures a batch of Arrow after every row that it adds, and Arrow's list vector goes over its last nulls
again each time that it is measured. So a batch in which headers are null costs the square of its rows; an
empty list in place of the null costs nothing. For the sink both are a message without headers.

`spark.sql.execution.arrow.maxBytesPerBatch=2147483647` would end the measuring, but then 10,000 large
messages are one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.spark.columns import DDL, HEADERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def without_nulls(rows: DataFrame, *names: str) -> DataFrame:
    """An empty list where these columns are null (`headers` if none is named), as far as they are there."""
    from pyspark.sql import functions as f

    found = [name for name in names or (HEADERS,) if name in rows.columns]
    empty = f.array().cast(DDL[HEADERS])
    return rows.withColumns({name: f.coalesce(f.col(name), empty) for name in found})


def with_nulls(rows: DataFrame) -> DataFrame:
    """Null where headers are an empty list, as a topic's rows have it."""
    from pyspark.sql import functions as f

    return rows.withColumn(HEADERS, f.when(f.size(HEADERS) > 0, f.col(HEADERS)))
