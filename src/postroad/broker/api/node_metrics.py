"""NodeMetrics (10002), version 0: what this node counts and knows about itself, as Prometheus reads it.

Postroad's own: gateways ask for it and show it at `/metrics`. Not advertised (see `wire.node_metrics`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.metrics.collect import collect
from postroad.security.resources import Operation
from postroad.wire import node_metrics as codec

if TYPE_CHECKING:
    from postroad.broker.node import Node

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)
ADVERTISED: Final = False


def handle(node: Node, call: Call) -> Result:
    codec.decode_request(call.body, call.version)
    return _answer(node, call.version)


async def _answer(node: Node, version: int) -> bytes:
    return codec.encode_response(codec.NodeMetricsResponse(text=await collect(node)), version)
