"""Small files → large ones: which belong together, one file out of several, and the commits that swap them.

Each group has a commit of its own, decided when its new file is written: what others append meanwhile is in
nobody's way, and what others compact or delete meanwhile is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from postroad.pipelines.tables.files import PartFile
from postroad.pipelines.tables.schema import DATE
from postroad.pipelines.tables.table import TARGET_BYTES, DataFile, Table, over_conflicts
from postroad.spark.columns import TOPIC

LARGE_BYTES: Final = TARGET_BYTES * 3 // 4  # left alone: rewriting it again would bring little


class SmallFile(NamedTuple):
    path: str  # below the table's location
    topic: str
    date: str
    bytes: int


# In one commit the merged file takes the place of the small ones; False, and nothing is changed, if one of
# them is no longer in the table. Raises Conflict. True, too, if the merged file is in the table already.
Swap = Callable[[Sequence[SmallFile], DataFile], bool]


def compact(table: Table, files: Iterable[SmallFile], schema: Any, swap: Swap) -> None:
    """Raises Conflict if others commit all the time; the groups before that are done."""
    for group in groups(files):
        try:
            merged = merge(table, group, schema)
        except FileNotFoundError:
            continue  # compacted or deleted by somebody else
        if not over_conflicts(partial(swap, group, merged)):
            table.discard([merged])


def groups(files: Iterable[SmallFile]) -> list[list[SmallFile]]:
    """Files of one topic and date, so many that they make about one file of the target size; two at least."""
    found: list[list[SmallFile]] = []
    size = 0
    for file in sorted((file for file in files if file.bytes < LARGE_BYTES), key=lambda file: file[1:]):
        last = found[-1][-1] if found else None
        fits = last is not None and last[1:3] == file[1:3] and size + file.bytes <= TARGET_BYTES
        if fits:
            found[-1].append(file)
            size += file.bytes
        else:
            found.append([file])
            size = file.bytes
    return [group for group in found if len(group) > 1]


def merge(table: Table, group: Sequence[SmallFile], schema: Any) -> DataFile:
    """A new file with all their rows; the old ones are left as they are."""
    topic, day = group[0].topic, date.fromisoformat(group[0].date)
    merged = PartFile(table, topic, day, schema)
    try:
        for small in group:
            with table.location.read(small.path) as stream:
                for batch in pq.ParquetFile(stream).iter_batches():
                    merged.write(_aligned(batch, schema, topic, day))
        return merged.finish()
    except BaseException:
        merged.abandon()
        raise


def _aligned(batch: Any, schema: Any, topic: str, day: date) -> Any:
    """Older files lack columns that came later; none has those that its directory names."""
    given = {TOPIC: topic, DATE: day}
    arrays = []
    for field in schema:
        if field.name in batch.schema.names:
            arrays.append(batch.column(field.name).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given.get(field.name), field.type), batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
