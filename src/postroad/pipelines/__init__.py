"""The jobs that every queue's owner needs, on Spark.

`archive` keeps topics in a lake of Delta, Iceberg or Parquet tables (`tables`), each record once.
`history` joins that archive and the live topic into one DataFrame. Each job is a plain function that is
given a SparkSession; `session` makes one, and says first what is missing where it can't be made.
Nothing here starts a broker: pipelines are clients of it, like everybody else.

Start reading at `archive`, then `tables/table`.
"""
