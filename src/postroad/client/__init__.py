"""A small asyncio Kafka client, used by the command line, the gateway and between nodes.

It knows what Postroad needs and little more: no transactions, no share groups, no security yet; for
applications the usual clients are the better choice. From the bottom: `connection` speaks to one
node, `client` finds the right one and asks again, `producer` and `consumer` (with `fetcher` and
`member`) move records; `topics`, `groups` and `offsets` are what an operator asks. Every wait is
bounded by a timeout. Start with `client`.

The names below are loaded when they are first used: a command that only lists topics need not pay
for the codecs of groups and fetches.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postroad.client.client import Client
    from postroad.client.consumer import Consumer
    from postroad.client.fetcher import Fetched
    from postroad.client.metadata import TopicPartition
    from postroad.client.offsets import EARLIEST, LATEST
    from postroad.client.producer import Delivery, Producer, Sent

__all__ = [
    "EARLIEST",
    "LATEST",
    "Client",
    "Consumer",
    "Delivery",
    "Fetched",
    "Producer",
    "Sent",
    "TopicPartition",
]

_HOMES = {
    "EARLIEST": "offsets",
    "LATEST": "offsets",
    "Client": "client",
    "Consumer": "consumer",
    "Delivery": "producer",
    "Fetched": "fetcher",
    "Producer": "producer",
    "Sent": "producer",
    "TopicPartition": "metadata",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
