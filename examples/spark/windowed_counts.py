"""Windowed aggregation with a watermark: clicks on each page in each minute, from topic to topic.

python windowed_counts.py [HOST:PORT]

A window is written once, when it is over: when an event came whose time is 30 seconds after its end. What
comes later than that is left out. The last minute stays open, as it should: more of it may come.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from sample_data import main, new_topic, publish, read_events, values, write_events

CLICKS = [
    {"page": "/home", "at": "2026-03-01T10:00:05Z"},
    {"page": "/home", "at": "2026-03-01T10:00:40Z"},
    {"page": "/cart", "at": "2026-03-01T10:00:50Z"},
    {"page": "/home", "at": "2026-03-01T10:01:10Z"},
    {"page": "/cart", "at": "2026-03-01T10:03:00Z"},
]


def per_minute(clicks: DataFrame) -> DataFrame:
    counts = (
        clicks.select("value.*")
        .withWatermark("at", "30 seconds")
        .groupBy(sf.window("at", "1 minute"), "page")
        .count()
    )
    minute = sf.date_format("window.start", "HH:mm").alias("minute")
    value = sf.to_json(sf.struct(minute, "page", "count"))
    return counts.select(sf.col("page").alias("key"), value.alias("value"))


def run(spark: SparkSession, bootstrap: str, checkpoint: str) -> None:
    source, target = new_topic(bootstrap, "clicks"), new_topic(bootstrap, "clicks-per-minute")
    publish(bootstrap, source, "page", CLICKS)
    clicks = read_events(spark, bootstrap, source, "page string, at timestamp")
    write_events(per_minute(clicks), bootstrap, target, checkpoint).awaitTermination()
    print(*values(spark, bootstrap, target), sep="\n")


if __name__ == "__main__":
    main(run)
