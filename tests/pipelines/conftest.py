"""The session and the node of tests/spark serve these tests, too."""

from __future__ import annotations

from tests.spark.conftest import node, spark, topic

__all__ = ["node", "spark", "topic"]
