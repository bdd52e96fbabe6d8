"""What the examples share: a session, topics of their own, and some events in them."""

import json
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

DEFAULT = "127.0.0.1:9092"


def new_topic(bootstrap: str, name: str) -> str:
    """A topic that no earlier run has used; its name."""
    topic = f"{name}-{uuid.uuid4().hex[:6]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(30)
    return topic


def publish(bootstrap: str, topic: str, key: str, events: Iterable[dict[str, Any]]) -> None:
    """Events as JSON, by the field that is their key: those of one key keep their order."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for event in events:
        producer.produce(topic, key=event[key], value=json.dumps(event))
    producer.flush(30)


def read_events(spark: SparkSession, bootstrap: str, topic: str, schema: str) -> DataFrame:
    """A stream of a topic's JSON values: `value` is a struct of that schema."""
    return (
        spark.readStream.format("postroad")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("valueFormat", "json")
        .option("valueSchema", schema)
        .load()
    )


def write_events(events: DataFrame, bootstrap: str, topic: str, checkpoint: str) -> StreamingQuery:
    """Into a topic until all is done that is there now; leave out the trigger to go on for ever."""
    return (
        events.writeStream.format("postroad")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def values(spark: SparkSession, bootstrap: str, topic: str) -> list[str]:
    """All values of a topic, sorted."""
    rows = (
        spark.read.format("postroad")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
        .selectExpr("cast(value as string) as value")
        .collect()
    )
    return sorted(row.value for row in rows)


def main(run: Callable[[SparkSession, str, str], None]) -> None:
    """Runs an example on this machine: `python EXAMPLE.py [HOST:PORT]`."""
    bootstrap = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as checkpoint:
        run(spark, bootstrap, checkpoint)
    spark.stop()
