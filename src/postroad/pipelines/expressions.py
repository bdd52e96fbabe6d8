"""SQL that users give to a pipeline, checked before anything is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from postroad.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHY = "a pipeline that is repeated must choose the same messages"


def checked(rows: DataFrame, option: str, condition: str | None) -> DataFrame:
    """The rows for which the condition holds. PipelineError if it is none, or differs each time."""
    if condition is None:
        return rows
    return _analysed(lambda: rows.where(condition), option, condition)


def with_value(rows: DataFrame, option: str, column: str, expression: str, kind: str) -> DataFrame:
    """The rows with another value of a column, of its type `kind`."""
    from pyspark.sql import functions as f

    return _analysed(lambda: rows.withColumn(column, f.expr(expression).cast(kind)), option, expression)


def _analysed(make: Any, option: str, text: str) -> DataFrame:
    from pyspark.errors import AnalysisException, ParseException

    try:
        found: DataFrame = make()
        found.schema  # noqa: B018 (over Spark Connect it is analysed now)
    except (AnalysisException, ParseException) as error:
        first = str(error).strip().splitlines()[0]
        raise PipelineError(f"{option} {text!r}: {first}") from None
    if not _is_deterministic(found):
        raise PipelineError(
            f"{option} {text!r} says something else each time, and {_WHY}. "
            "For a sample use xxhash64(key, offset) % 100 < 5; for now() write the time itself"
        )
    return found


def _is_deterministic(rows: Any) -> bool:
    """Spark Connect doesn't tell. To Spark now() and current_user() are what they are for one query."""
    if not hasattr(rows, "_jdf"):
        return True
    plan = rows._jdf.queryExecution().analyzed()
    patterns = rows.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return bool(plan.deterministic()) and not plan.containsPattern(patterns.CURRENT_LIKE())
