"""From a topic into a table, and from there what follows: declared, in no particular order."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

spark = SparkSession.active()
BOOTSTRAP = spark.conf.get("shop.bootstrap")


@dp.table
def orders() -> DataFrame:
    return (
        spark.readStream.format("postroad")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("valueFormat", "json")
        .option("valueSchema", "id string, customer string, total int")
        .load()
        .select("value.*", "timestamp")
    )


@dp.materialized_view
def revenue() -> DataFrame:
    return spark.read.table("orders").groupBy("customer").agg(sf.sum("total").alias("total"))


dp.create_sink("large_orders", "postroad", {"kafka.bootstrap.servers": BOOTSTRAP, "topic": "large-orders"})


@dp.append_flow(target="large_orders")
def only_large() -> DataFrame:
    large = spark.readStream.table("orders").where("total >= 100")
    return large.select(sf.col("customer").alias("key"), sf.to_json(sf.struct("id", "total")).alias("value"))
