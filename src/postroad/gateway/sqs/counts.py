"""How many messages a queue has: those that can be received, those in flight, those that are delayed.

A subscription's position tells how many messages are not done with, and a glance at each partition how many
of them are held or wait for their time. The two are asked one after the other: hence "approximate".
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from postroad.client import subscriptions
from postroad.client.client import Client

# Of a partition that nobody has received from yet nothing is known: so many messages are looked at first.
LOOKED_AT: Final = 1000


class Counts(NamedTuple):
    visible: int
    in_flight: int
    delayed: int


async def count(client: Client, subscription: str) -> Counts:
    positions = await subscriptions.positions(client, subscription)
    glances = await asyncio.gather(
        *(
            subscriptions.peek(client, subscription, topic_partition, max_messages=LOOKED_AT)
            for topic_partition in positions
        )
    )
    in_flight = sum(glance.in_flight + glance.dying for glance in glances)
    delayed = sum(glance.delayed for glance in glances)
    undone = sum(max(0, position.lag) for position in positions.values())
    return Counts(max(0, undone - in_flight - delayed), in_flight, delayed)
