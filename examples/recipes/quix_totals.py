"""Quix Streams on Postroad: totals by shop, exactly once, and its state is safe in a changelog topic.

    python quix_totals.py 127.0.0.1:9092

It runs twice. The second time its state directory is another one, as on another machine: totals go on.
"""

import sys
import tempfile
import uuid

from quixstreams import Application
from quixstreams.models import TopicConfig

run = uuid.uuid4().hex[:8]
address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"


def application(state_dir: str) -> Application:
    return Application(
        broker_address=address,
        consumer_group=f"totals-{run}",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",  # transactions: offsets, state and results together
        state_dir=state_dir,
        loglevel="ERROR",
        topic_create_timeout=30,
    )


def total_up(orders: list[dict]) -> None:
    with tempfile.TemporaryDirectory() as state_dir:
        app = application(state_dir)
        sales = app.topic(f"sales-{run}", config=TopicConfig(num_partitions=3, replication_factor=1))
        totals = app.topic(f"totals-{run}", config=TopicConfig(num_partitions=3, replication_factor=1))
        with app.get_producer() as producer:
            for order in orders:
                message = sales.serialize(key=order["shop"], value=order)
                producer.produce(sales.name, key=message.key, value=message.value)

        def add(order: dict, state) -> dict:
            total = state.get("total", 0) + order["euros"]
            state.set("total", total)
            return {"shop": order["shop"], "total": total}

        app.dataframe(sales).apply(add, stateful=True).to_topic(totals)
        # Without `count` it runs until it is stopped.
        found = app.run(count=len(orders), timeout=60, collect=True)
        for each in sorted(found, key=lambda each: (each["shop"], each["total"])):
            print(each["shop"], each["total"])


print("first:")
total_up([{"shop": "berlin", "euros": 10}, {"shop": "paris", "euros": 5}, {"shop": "berlin", "euros": 7}])
print("on another machine:")
total_up([{"shop": "berlin", "euros": 1}, {"shop": "paris", "euros": 2}])
