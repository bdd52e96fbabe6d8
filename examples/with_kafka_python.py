"""Publish, consume, and consume as a group with kafka-python.

python with_kafka_python.py [HOST:PORT]
"""

import sys
from itertools import islice

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "letters-kafka-python"


def publish() -> None:
    """The producer is idempotent by default: a message is stored once, even if it is sent again."""
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    for letter in "abc":
        stored = producer.send(TOPIC, letter.encode(), key=b"alphabet", headers=[("language", b"en")]).get(10)
        print(f"published {letter} at offset {stored.offset}")
    producer.close()


def consume() -> None:
    """Read a partition from its beginning; no group, nothing is remembered."""
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP)
    partition = TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    for message in islice(consumer, 3):
        print(f"consumed {message.value.decode()} with {dict(message.headers)}")
    consumer.close()


def consume_as_group() -> None:
    """Members of a group share the partitions; the commit is where the group goes on next time."""
    settings = {"group_id": "readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, **settings)
    for message in islice(consumer, 3):
        print(f"the group got {message.value.decode()}")
    consumer.commit()
    consumer.close()


if __name__ == "__main__":
    publish()
    consume()
    consume_as_group()
