"""A topic's messages as a Parquet file for one session of Spark on this machine.

A small topic is read here, in the program itself, in less time than Spark needs to start the Python processes
of a data source; and of a file Spark reads the columns and the rows that a query needs. A large topic is the
data source's, of which several tasks read at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from postroad.spark.cluster import Cluster
from postroad.spark.columns import ALL_WITH_HEADERS
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import read_range

OFFSETS_MAX: Final = 1_000_000
BYTES_MAX: Final = 256 * 1024 * 1024  # in memory's layout; a second of writing, and the disk's to bear


def spool(
    directory: Path, cluster: Cluster, parts: Sequence[OffsetRange], schema: Any, made: Callable[[Any], Any]
) -> Path | None:
    """A file with all messages of these ranges as `made` makes them out of the source's batches.

    None, and no file is left, if they are too many for that.
    """
    if sum(part.size for part in parts) > OFFSETS_MAX:
        return None
    path = directory / f"{uuid.uuid4().hex}.parquet"
    batches = (batch for part in parts for batch in read_range(cluster, part, ALL_WITH_HEADERS))
    left = BYTES_MAX
    # Uncompressed: it is read once or twice, and at once.
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for batch in batches:
            left -= batch.nbytes
            if left < 0:
                break
            writer.write_batch(made(batch))
    if left < 0:
        path.unlink()
        return None
    return path
