"""A small asyncio Kafka client, used by the command line, the gateway and between nodes.

It knows what Postroad needs and little more: no transactions, no security yet; for applications the
usual clients are the better choice. From the bottom: `connection` speaks to one node, `client` finds the
right one and asks again, `producer` and `consumer` (with `fetcher` and `member`) move records;
`share_consumer` (with `share_member`, `share_session`, `share_outbox`) takes messages of a subscription;
`topics`, `groups`, `subscriptions` and `offsets` are what an operator asks. Every wait is bounded by a
timeout. Start with `client`.

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
    from postroad.client.share_consumer import ShareConsumer
    from postroad.client.share_message import AckType, ShareMessage

__all__ = [
    "EARLIEST",
    "LATEST",
    "AckType",
    "Client",
    "Consumer",
    "Delivery",
    "Fetched",
    "Producer",
    "Sent",
    "ShareConsumer",
    "ShareMessage",
    "TopicPartition",
]

_HOMES = {
    "EARLIEST": "offsets",
    "LATEST": "offsets",
    "AckType": "share_message",
    "Client": "client",
    "Consumer": "consumer",
    "Delivery": "producer",
    "Fetched": "fetcher",
    "Producer": "producer",
    "Sent": "producer",
    "ShareConsumer": "share_consumer",
    "ShareMessage": "share_message",
    "TopicPartition": "metadata",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
