"""State of your own, in Python (transformWithState): an alarm after three failed logins in a row.

python failed_logins.py [HOST:PORT]

The processor is called with the new rows of one user and keeps a number for each of them. The number is part
of the checkpoint, so after a crash neither a failure is counted twice nor an alarm lost.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from sample_data import main, new_topic, publish, read_events, values, write_events

LOGINS = [
    *({"user": "eve", "ok": ok} for ok in (False, False, True, False, False)),
    *({"user": "mallory", "ok": ok} for ok in (False, False, False, False)),
]
IN_A_ROW = 3
# State in the memory of the JVM is Spark's default; this kind of state needs a store that can hold columns.
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class FailedLogins(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._failures = handle.getValueState("failures", "count int")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        known = self._failures.get()
        count = known[0] if known else 0
        for row in sorted(rows, key=lambda row: row.offset):
            count = 0 if row.ok else count + 1
            if count == IN_A_ROW:
                yield Row(user=key[0], offset=row.offset)
        self._failures.update((count,))

    def close(self) -> None:
        pass


def alarms(logins: DataFrame) -> DataFrame:
    return (
        logins.select("value.user", "value.ok", "offset")
        .groupBy("user")
        .transformWithState(FailedLogins(), "user string, offset bigint", "append", "none")
        .select(
            sf.col("user").alias("key"), sf.concat(sf.lit("three failures in a row: "), "user").alias("value")
        )
    )


def run(spark: SparkSession, bootstrap: str, checkpoint: str) -> None:
    source, target = new_topic(bootstrap, "logins"), new_topic(bootstrap, "alarms")
    publish(bootstrap, source, "user", LOGINS)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
    logins = read_events(spark, bootstrap, source, "user string, ok boolean")
    write_events(alarms(logins), bootstrap, target, checkpoint).awaitTermination()
    print(*values(spark, bootstrap, target), sep="\n")


if __name__ == "__main__":
    main(run)
