"""A queue worker: any number of them share the jobs, and each job is acknowledged on its own.

python queue_worker.py [HOST:PORT]

Three jobs are published. One succeeds, one fails at first and is tried again, one can't be done at all and
becomes a dead letter. Nothing here is particular to one worker: start as many as there is work for.
"""

import sys

from confluent_kafka import (
    OFFSET_BEGINNING,
    AcknowledgeType,
    Consumer,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "jobs"
SUBSCRIPTION = "workers"


def create_subscription() -> None:
    """As `postroad subscription create workers --topic jobs --start earliest --lock 10s --backoff 200ms`."""
    configs = {
        "postroad.topics": TOPIC,
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": "10000",
        "postroad.backoff.initial.ms": "200",
    }
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, SUBSCRIPTION, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(timeout=30)


def publish() -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for job in ("easy", "flaky", "impossible"):
        producer.produce(TOPIC, value=job)
        print(f"published {job}")
    producer.flush()


def do(job: str, delivery: int) -> AcknowledgeType:
    """What becomes of the message: done, to be tried again, or hopeless."""
    if job == "impossible":
        print(f"rejected {job}")
        return AcknowledgeType.REJECT
    if job == "flaky" and delivery == 1:
        print(f"released {job}: it comes again")
        return AcknowledgeType.RELEASE
    print(f"did {job} (delivery {delivery})")
    return AcknowledgeType.ACCEPT


def work(jobs: int) -> None:
    """Until so many are settled for good; a worker of your own never ends."""
    settings = {"bootstrap.servers": BOOTSTRAP, "group.id": SUBSCRIPTION, "log_level": 3}
    consumer = ShareConsumer(settings | {"share.acknowledgement.mode": "explicit"})
    consumer.subscribe([TOPIC])
    while jobs:
        for message in consumer.poll(timeout=1.0):
            fate = do(message.value().decode(), message.delivery_count())
            consumer.acknowledge(message, fate)
            jobs -= fate != AcknowledgeType.RELEASE
        consumer.commit_sync(timeout=10)  # durable now; without it the next poll says it
    consumer.close()


def read_dead_letters() -> None:
    """They are messages of a topic like any other. `postroad redrive workers` would send them back."""
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "nobody", "enable.auto.commit": False})
    consumer.assign([TopicPartition(f"{SUBSCRIPTION}.dead", 0, OFFSET_BEGINNING)])
    for message in consumer.consume(1, timeout=10):
        headers = dict(message.headers())
        print(f"dead letter {message.value().decode()}: {headers['postroad-dead-reason'].decode()}")
    consumer.close()


if __name__ == "__main__":
    create_subscription()
    publish()
    work(jobs=3)
    read_dead_letters()
