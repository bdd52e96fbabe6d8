"""How Spark finds the format `postroad` without any call.

Spark looks for top-level modules whose name begins with `pyspark_` and takes their `DefaultSource`. It
imports them whenever a session first meets any Python data source, so this is cheap and never fails.
"""

from postroad.errors import PostroadError

try:
    from postroad.spark.source import PostroadDataSource as DefaultSource
except (ImportError, PostroadError):  # installed without the extra `spark`: the format isn't there
    __all__ = []
else:
    __all__ = ["DefaultSource"]
