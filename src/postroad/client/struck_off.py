"""Which dead letters were sent back: what the subscription of all redrives is done with.

A letter that was sent back stays in its topic. It is accepted in the subscription `<dead-letter
topic>.redrive`, which is there for nothing else; lists and metrics leave it out (`postroad.bookkeeping`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postroad.client import subscriptions
from postroad.client.browse import DONE
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import GroupIdNotFound
from postroad.wire.records import Record

GROUP_SUFFIX: Final = ".redrive"


async def not_sent_back(
    client: Client, topic_partition: TopicPartition, letters: Sequence[Record]
) -> list[Record]:
    """Those of the letters, ascending, that no redrive has sent back."""
    if not letters:
        return []
    first, last = letters[0].offset, letters[-1].offset
    group = topic_partition.topic + GROUP_SUFFIX
    try:
        answer = await subscriptions.peek(client, group, topic_partition, first, last - first + 1)
    except GroupIdNotFound:
        return list(letters)
    left = {
        offset
        for found in answer.ranges
        if found.state != DONE
        for offset in range(max(found.first, first), min(found.last, last) + 1)
    }
    return [letter for letter in letters if letter.offset in left]
