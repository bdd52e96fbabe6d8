"""Topics as DataFrames, without a jar: the data source `postroad` of PySpark.

    spark.read.format("postroad").option("kafka.bootstrap.servers", "…").option("subscribe", "orders").load()

Executors fetch raw batches over our own wire codec and decode them, vectorised, into Arrow; no JVM client and
no row-by-row Python is in the way. Columns, options and offsets are those of Spark's Kafka connector, so a
query and its checkpoint move from the one to the other.

Start with `source`, then `reader` and `stream_reader`; what they are told is in `options`, which rows they
deliver in `columns`, how much at a time in `ranges`. `cluster` is the blocking Kafka client under all of it,
`decode` and `encode` turn batches into Arrow and back, `sink` writes. The room speaks Kafka's protocol and
nothing else: it reads Apache Kafka as well, and the broker doesn't know that it exists.
"""

from importlib.util import find_spec

from postroad.errors import ConfigurationError

if find_spec("pyspark") is None or find_spec("pyarrow") is None:
    raise ConfigurationError("The data pipeline needs PySpark and Arrow: pip install 'postroad[spark]'")
