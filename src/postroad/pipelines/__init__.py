"""The jobs that every queue's owner needs, on Spark.

`archive` keeps topics in a lake of Delta, Iceberg or Parquet tables (`tables`), each record once.
`history` joins that archive and the live topic into one DataFrame. `replay`, `redrive` and `mirror` put
messages into topics again: from the past, from the dead letters, from another cluster. They go in steps
that are noted before they are done (`journal`, `steps`), and each message is stored once (`delivery`).
Each job is a plain function that is given a SparkSession; `session` makes one, and says first what is
missing where it can't be made. Nothing here starts a broker: pipelines are clients of it, like everybody
else.

Start reading at `archive`, then `tables/table`.
"""
