"""From Kafka to Postroad while everything runs: topics are mirrored, groups go on where they were.

    python move_from_kafka.py 127.0.0.1:9092

The old cluster is a node that is started here; it may be any Apache Kafka.
"""

import subprocess
import sys

from confluent_kafka import Consumer, Producer

from postroad.testing import node


def consume(bootstrap: str, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["move-orders"])
    found = []
    while len(found) < count:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(message.value().decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


with node() as old:
    producer = Producer({"bootstrap.servers": old.bootstrap})
    for number in range(6):
        producer.produce("move-orders", f"order {number}")
    producer.flush()
    print("at the old cluster:", *consume(old.bootstrap, 4), sep="  ")

    # All the time until the last producer has moved; --once is enough for a test.
    mirror = [sys.executable, "-m", "postroad", "mirror", "-b", old.bootstrap, "--to", sys.argv[1]]
    options = ["--topic", "move-orders", "--group", "billing", "--once"]
    subprocess.run([*mirror, *options], check=True, stdout=subprocess.DEVNULL)

    # Consumers first, each group at a time: stop it there, start it here.
    print("at Postroad:", *consume(sys.argv[1], 2), sep="  ")
