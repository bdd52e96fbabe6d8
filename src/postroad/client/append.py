"""Appends one batch to one partition: a Produce request, seen through.

The topic is named by its id. One that was deleted and made anew under its name since this client looked is
so noticed by its node, which refuses the former id; the batch then goes to the new topic, and whoever sent it
is told the id of the topic in which it is. Nodes that know no ids in Produce (before version 13) get the
name. So do they with acks=0: nobody would hear that an id is out of date.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import DuplicateSequence, PostroadError, by_code
from postroad.wire.messages import produce
from postroad.wire.primitives import Buffer

ALL: Final = -1
NO_ACKS: Final = 0
UNKNOWN_OFFSET: Final = -1


class MadeAnew(PostroadError):
    """The batch was meant for a topic that is gone; another one has its name."""


class Appended(NamedTuple):
    """The offset is -1 with acks=0, or for a duplicate that is long past; the time is -1 where records keep
    their own."""

    base_offset: int
    append_time: int
    topic_id: bytes


async def append(
    client: Client,
    topic_partition: TopicPartition,
    batch: Buffer,
    *,
    acks: int = ALL,
    timeout_s: float | None = None,
    only_id: bytes | None = None,
) -> Appended:
    """Any number of tries within the timeout; raises what the last one was refused with.

    `only_id`: MadeAnew where the topic of that name is another one by now. Nothing is written to that one, as
    far as its node knows topic ids in Produce.
    """
    timeout_s = client.timeout_s if timeout_s is None else timeout_s
    partition = produce.PartitionProduceData(index=topic_partition.partition, records=batch)
    topic = produce.TopicProduceData(name=topic_partition.topic, partition_data=[partition])
    request = produce.ProduceRequest(acks=acks, timeout_ms=int(timeout_s * 1000), topic_data=[topic])

    async def attempt() -> Appended:
        found = await client.topic(topic_partition.topic)
        if only_id not in (None, found.id):
            raise MadeAnew(f"{topic_partition.topic} was deleted, and created anew.")
        topic.topic_id = found.id
        connection = await client.connection(found.leader(topic_partition.partition))
        if acks == NO_ACKS:
            await connection.post(produce, request, timeout_s)
            return Appended(UNKNOWN_OFFSET, -1, found.id)
        version = connection.version_by_id(produce)
        answer = await connection.call(produce, request, timeout_s, version)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == DuplicateSequence.code:
            return Appended(UNKNOWN_OFFSET, -1, found.id)
        if result.error_code:
            raise by_code(result.error_code, result.error_message)
        return Appended(result.base_offset, result.log_append_time_ms, found.id)

    return await client.retry(attempt, timeout_s)
