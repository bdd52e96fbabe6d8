"""A small asyncio Kafka client, used by the command line, the gateway and between nodes.

It knows what Postroad needs and little more: no transactions, no share groups, no security yet; for
applications the usual clients are the better choice. From the bottom: `connection` speaks to one
node, `client` finds the right one and asks again, `producer` and `consumer` (with `fetcher` and
`member`) move records; `topics`, `groups` and `offsets` are what an operator asks. Every wait is
bounded by a timeout. Start with `client`.
"""

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
