"""Produce requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from postroad.client.offsets import by_topic
from postroad.spark.router import TopicPartition
from postroad.wire.messages import produce
from postroad.wire.primitives import Buffer

LAST_WITHOUT_JOINING: Final = (
    11  # with later versions partitions join the transaction by themselves (KIP-890)
)


def produce_request(
    batches: Mapping[TopicPartition, Buffer], acks: int, timeout_ms: int, transactional_id: str | None = None
) -> produce.ProduceRequest:
    topics = [
        produce.TopicProduceData(
            name=topic,
            partition_data=[
                produce.PartitionProduceData(index=partition, records=batches[topic, partition])
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(batches).items()
    ]
    return produce.ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topics
    )
