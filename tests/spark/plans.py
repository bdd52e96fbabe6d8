"""What Spark says of a query that was carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def metrics(found: DataFrame, node: str, metric: str) -> list[int]:
    """One metric of each node of the plan whose name has this in it."""
    query: Any = found._jdf.queryExecution()
    return _metrics(query.executedPlan(), node, metric)


def _metrics(plan: Any, node: str, metric: str) -> list[int]:
    if plan.nodeName() == "AdaptiveSparkPlan":
        return _metrics(plan.executedPlan(), node, metric)
    if node in plan.nodeName():
        return [int(plan.metrics().apply(metric).value())]
    children = plan.children()
    return [
        value for number in range(children.size()) for value in _metrics(children.apply(number), node, metric)
    ]
