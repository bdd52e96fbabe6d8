"""Publish, consume, and consume as a group with aiokafka.

python with_aiokafka.py [HOST:PORT]
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "letters-aiokafka"


async def publish() -> None:
    """An idempotent producer: a message is stored once, however often the connection breaks."""
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, enable_idempotence=True) as producer:
        for letter in "abc":
            headers = [("language", b"en")]
            stored = await producer.send_and_wait(TOPIC, letter.encode(), key=b"alphabet", headers=headers)
            print(f"published {letter} at offset {stored.offset}")


async def consume() -> None:
    """Read a partition from its beginning; no group, nothing is remembered."""
    async with AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        await consumer.seek_to_beginning()
        for _ in range(3):
            message = await consumer.getone()
            print(f"consumed {message.value.decode()} with {dict(message.headers)}")


async def consume_as_group() -> None:
    """Members of a group share the partitions; the commit is where the group goes on next time."""
    settings = {"group_id": "readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with AIOKafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, **settings) as consumer:
        for _ in range(3):
            message = await consumer.getone()
            print(f"the group got {message.value.decode()}")
        await consumer.commit()


async def main() -> None:
    await publish()
    await consume()
    await consume_as_group()


if __name__ == "__main__":
    asyncio.run(main())
