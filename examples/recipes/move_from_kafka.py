"""From Kafka to Postroad while everything runs: topics are mirrored, groups go on where they were.

    python move_from_kafka.py 127.0.0.1:9092

The old cluster is the one at OLD_KAFKA, any Apache Kafka; without it a node that is started here.
"""

import os
import subprocess
import sys
import uuid
from contextlib import ExitStack

from confluent_kafka import Consumer, Producer

from postroad.testing import node

topic = f"orders-{uuid.uuid4().hex[:8]}"
group = f"billing-{topic}"


def consume(bootstrap: str, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found = []
    while len(found) < count:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(message.value().decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


with ExitStack() as stack:
    old = os.environ.get("OLD_KAFKA") or stack.enter_context(node()).bootstrap
    producer = Producer({"bootstrap.servers": old})
    for number in range(6):
        producer.produce(topic, f"order {number}")
    producer.flush()
    print("at the old cluster:", *consume(old, 4), sep="  ")

    # All the time until the last producer has moved; --once is enough for a test.
    mirror = [sys.executable, "-m", "postroad", "mirror", "-b", old, "--to", sys.argv[1]]
    options = ["--topic", topic, "--group", group, "--once"]
    subprocess.run([*mirror, *options], check=True, stdout=subprocess.DEVNULL)

    # Consumers first, each group at a time: stop it there, start it here.
    print("at Postroad:", *consume(sys.argv[1], 2), sep="  ")
