"""What nodes tell about themselves."""

from __future__ import annotations

from typing import Final

from postroad.client.client import Client
from postroad.wire import node_metrics as metrics_api

METRICS_LANE: Final = "metrics"  # its answer may take a while, which nobody else should wait for


async def metrics(client: Client, node: int, timeout_s: float) -> str:
    """One node's metrics in Prometheus' text format, in one try."""
    answer = await client.call(
        metrics_api,
        metrics_api.NodeMetricsRequest(),
        node=node,
        lane=METRICS_LANE,
        timeout_s=timeout_s,
        version=metrics_api.MAX_VERSION,
    )
    return str(answer.text)
