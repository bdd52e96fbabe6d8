"""Topics by their ids: receipts and Kafka's share requests name them so."""

from __future__ import annotations

from postroad.client.client import Client
from postroad.client.metadata import Topic
from postroad.errors import UnknownTopicId


class TopicIds:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: dict[bytes, str] = {}

    async def topic(self, topic_id: bytes) -> Topic:
        """Raises UnknownTopicId."""
        for _ in range(2):
            name = self._names.get(topic_id)
            if name is not None:
                topic = await self._client.topic(name)
                if topic.id == topic_id:
                    return topic
            cluster = await self._client.cluster()
            self._names = {topic.id: topic.name for topic in cluster.topics.values()}
        raise UnknownTopicId()

    async def leader(self, topic_id: bytes, partition: int) -> int:
        return (await self.topic(topic_id)).leader(partition)
