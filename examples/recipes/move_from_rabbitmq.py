"""From RabbitMQ to Postroad while everything runs: a queue's messages are carried over until none comes.

    RABBITMQ_URL=amqp://guest:guest@127.0.0.1:5672 python move_from_rabbitmq.py 127.0.0.1:9092

A message is acknowledged there when it is stored here, so none is lost; one may be here twice if this dies.
"""

import os
import sys
import uuid

import pika

import postroad

BATCH = 500
QUIET_S = 1.0  # so long without a message: the queue is empty

run = uuid.uuid4().hex[:8]
queue, topic = f"parcels-{run}", f"parcels-{run}"
rabbit = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URL"]))
channel = rabbit.channel()


def carry_over(queue: str, topic: str, client: postroad.SyncClient) -> int:
    channel.basic_qos(prefetch_count=BATCH)
    count, waiting, last = 0, [], 0
    for method, properties, body in channel.consume(queue, inactivity_timeout=QUIET_S):
        if method is not None:
            headers = {name: str(value) for name, value in (properties.headers or {}).items()}
            waiting.append((body, headers))
            last = method.delivery_tag
        if waiting and (method is None or len(waiting) == BATCH):
            for body, headers in waiting:
                client.publish(topic, body, headers=headers)
            channel.basic_ack(last, multiple=True)
            count += len(waiting)
            waiting = []
        elif method is None:
            return count
    return count


channel.queue_declare(queue, durable=True)
for number in range(20):
    properties = pika.BasicProperties(headers={"shop": "berlin"}, delivery_mode=2)
    channel.basic_publish("", queue, f"parcel {number}".encode(), properties)

with postroad.SyncClient(sys.argv[1]) as client:
    print("carried over", carry_over(queue, topic, client))
    with client.receive(f"{topic}-workers", topic=topic, of=str) as messages:
        found = set()
        for message in messages:
            with message:
                assert message.headers["shop"] == "berlin"
                found.add(message.value)
            if len(found) == 20:
                break
    print("consumed", len(found), "here")
channel.queue_delete(queue)
rabbit.close()
