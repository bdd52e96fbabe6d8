"""dramatiq on RabbitMQ: durable queues and persistent messages, which are its defaults."""

import os
import sys
import time

import dramatiq
import notes
from dramatiq.brokers.rabbitmq import RabbitmqBroker

broker = RabbitmqBroker(url=os.environ["BENCH_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor
def work(sent_at: float) -> None:
    notes.job(sent_at)


if __name__ == "__main__":
    for _ in range(int(sys.argv[2])):
        work.send(time.monotonic() if sys.argv[1] == "pace" else 0.0)
        if sys.argv[1] == "pace":
            time.sleep(notes.PACE_S)
