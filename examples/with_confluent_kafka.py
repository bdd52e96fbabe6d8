"""Publish, consume, and consume as a group with confluent-kafka.

python with_confluent_kafka.py [HOST:PORT]
"""

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "letters-confluent-kafka"


def publish() -> None:
    """An idempotent producer: a message is stored once, however often the connection breaks."""

    def delivered(error, message) -> None:
        if error:
            raise KafkaException(error)
        print(f"published {message.value().decode()} at offset {message.offset()}")

    producer = Producer({"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True})
    for letter in "abc":
        headers = {"language": "en"}
        producer.produce(TOPIC, key="alphabet", value=letter, headers=headers, on_delivery=delivered)
    producer.flush()


def consume() -> None:
    """Read a partition from its beginning; no group, nothing is remembered."""
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "nobody", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    for message in consumer.consume(3, timeout=10):
        print(f"consumed {message.value().decode()} with {dict(message.headers())}")
    consumer.close()


def consume_as_group() -> None:
    """Members of a group share the partitions; the commit is where the group goes on next time."""
    settings = {"bootstrap.servers": BOOTSTRAP, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    for message in consumer.consume(3, timeout=30):
        print(f"the group got {message.value().decode()}")
    consumer.commit(asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    publish()
    consume()
    consume_as_group()
