"""What nodes tell about themselves and their cluster, much of it beyond Kafka's protocol."""

from __future__ import annotations

from typing import Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import Address
from postroad.errors import by_code
from postroad.wire import node_metrics as metrics_api
from postroad.wire import receipt_key as receipt_key_api
from postroad.wire.messages import describe_cluster

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


async def receipt_key(client: Client) -> bytes:
    """What all gateways of the cluster seal receipts with; the same for ever."""

    async def attempt() -> bytes:
        request = receipt_key_api.ReceiptKeyRequest()
        answer = await client.call(receipt_key_api, request, version=receipt_key_api.MAX_VERSION)
        if answer.error_code:
            raise by_code(answer.error_code)
        return bytes(answer.key)

    return await client.retry(attempt)


class NodeFacts(NamedTuple):
    """What the cluster says of one node. A fenced one is starting, and leads nothing yet."""

    id: int
    address: Address
    rack: str
    is_fenced: bool


async def describe(client: Client) -> list[NodeFacts]:
    """The nodes that are registered now, in order."""
    request = describe_cluster.DescribeClusterRequest(include_fenced_brokers=True)
    answer = await client.ask(describe_cluster, request)
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return sorted(
        NodeFacts(found.broker_id, Address(found.host, found.port), found.rack or "", found.is_fenced)
        for found in answer.brokers
    )
