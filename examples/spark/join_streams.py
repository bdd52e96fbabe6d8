"""Stream-stream join: each order with its payment, and those that nobody paid for within ten minutes.

python join_streams.py [HOST:PORT]

Both sides are remembered only as long as they can still find each other: the watermarks and the condition on
time say how long that is. An outer join can tell what did *not* happen, once it can't happen any more.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from sample_data import main, new_topic, publish, read_events, values, write_events

ORDERS = [
    {"id": "a", "total": 30, "at": "2026-03-01T10:00:00Z"},
    {"id": "b", "total": 12, "at": "2026-03-01T10:01:00Z"},
    {"id": "late", "total": 7, "at": "2026-03-01T12:00:00Z"},
]
PAYMENTS = [
    {"order": "a", "paid": "2026-03-01T10:04:00Z"},
    {"order": "b", "paid": "2026-03-01T10:31:00Z"},
    {"order": "late", "paid": "2026-03-01T12:00:00Z"},
]


def paid_or_not(orders: DataFrame, payments: DataFrame) -> DataFrame:
    known = orders.select("value.*").withWatermark("at", "1 minute")
    paid = payments.select("value.*").withWatermark("paid", "1 minute")
    in_time = sf.expr("order = id and paid between at and at + interval 10 minutes")
    state = sf.when(sf.isnull("paid"), "not paid").otherwise("paid")
    return known.join(paid, in_time, "leftOuter").select(
        sf.col("id").alias("key"), sf.to_json(sf.struct("id", "total", state.alias("state"))).alias("value")
    )


def run(spark: SparkSession, bootstrap: str, checkpoint: str) -> None:
    topics = [new_topic(bootstrap, name) for name in ("orders", "payments", "paid-or-not")]
    publish(bootstrap, topics[0], "id", ORDERS)
    publish(bootstrap, topics[1], "order", PAYMENTS)
    orders = read_events(spark, bootstrap, topics[0], "id string, total int, at timestamp")
    payments = read_events(spark, bootstrap, topics[1], "order string, paid timestamp")
    write_events(paid_or_not(orders, payments), bootstrap, topics[2], checkpoint).awaitTermination()
    print(*values(spark, bootstrap, topics[2]), sep="\n")


if __name__ == "__main__":
    main(run)
