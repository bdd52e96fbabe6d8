"""SQL over topics: a name that the query uses and Spark doesn't know is a topic's.

Which topics a query reads is Spark's to find out: it says which name it misses, that topic becomes
a view, and the query is tried again. So the one place that knows SQL is Spark's parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.history import Sources, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS_MAX: Final = 100  # that one query may read
_MISSING: Final = "TABLE_OR_VIEW_NOT_FOUND"
_NAME: Final = re.compile(r"`([^`]+)`")


def query(spark: SparkSession, text: str, sources: Sources) -> DataFrame:
    """What the SQL gives, each topic in it being its whole `history`.

    PipelineError says what is wrong with the query, in Spark's words.
    """
    from pyspark.errors import AnalysisException, ParseException

    for _ in range(TOPICS_MAX):
        try:
            return spark.sql(text)
        except AnalysisException as error:
            if error.getCondition() != _MISSING or isinstance(error, ParseException):
                raise
            parts = _NAME.findall((error.getMessageParameters() or {}).get("relationName", ""))
        if len(parts) != 1:
            raise PipelineError(f"write the topic's name in backquotes: `{'.'.join(parts)}`")
        view(spark, parts[0], sources)
    raise PipelineError(f"a query may read {TOPICS_MAX} topics at most")
