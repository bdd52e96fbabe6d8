"""Small files → large ones: which belong together, one file out of several, and the commits that swap them.

Each group has a commit of its own, decided when its new file is written: what others append meanwhile is in
nobody's way, and what others compact or delete meanwhile is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from postroad.pipelines.tables.files import PartFile
from postroad.pipelines.tables.schema import DATE
from postroad.pipelines.tables.table import TARGET_BYTES, DataFile, Table, TableFile, over_conflicts
from postroad.spark.columns import TOPIC

LARGE_BYTES: Final = TARGET_BYTES * 3 // 4  # left alone: rewriting it again would bring little


Swap = Callable[[Sequence[TableFile], DataFile], bool]
"""As `Table.swap`."""

Merging = Callable[[Sequence[Sequence[TableFile]], Any], Iterator[tuple[int, DataFile | None]]]
"""One file out of each group, with its number, in any order; None where a file of the group is gone. What is
given is the table's schema."""


def compact(
    table: Table, files: Iterable[TableFile], schema: Any, swap: Swap, merging: Merging | None = None
) -> None:
    """Raises Conflict if others commit all the time; the groups before that are done."""
    found = groups(files)
    for number, merged in (merging or partial(merged_here, table))(found, schema):
        if merged is not None and not over_conflicts(partial(swap, found[number], merged)):
            table.discard([merged])


def merged_here(
    table: Table, groups: Sequence[Sequence[TableFile]], schema: Any
) -> Iterator[tuple[int, DataFile | None]]:
    """As `Merging`, in this process, one after the other."""
    for number, group in enumerate(groups):
        yield number, merged_or_none(table, group, schema)


def merged_or_none(table: Table, group: Sequence[TableFile], schema: Any) -> DataFile | None:
    """None if one of them is gone: compacted or deleted by somebody else."""
    try:
        return merge(table, group, schema)
    except FileNotFoundError:
        return None


def groups(files: Iterable[TableFile]) -> list[list[TableFile]]:
    """Files of one topic and date, so many that they make about one file of the target size; two at least."""
    found: list[list[TableFile]] = []
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


def merge(table: Table, group: Sequence[TableFile], schema: Any) -> DataFile:
    """A new file with all their rows; the old ones are left as they are."""
    topic, day = group[0].topic, date.fromisoformat(group[0].date)
    merged = PartFile(table, topic, day, schema)
    try:
        for small in group:
            with table.location.read(small.path) as stream:
                for batch in pq.ParquetFile(stream).iter_batches():
                    merged.write(aligned(batch, schema, topic, day))
        return merged.finish()
    except BaseException:
        merged.abandon()
        raise


def aligned(batch: Any, schema: Any, topic: str, day: date) -> Any:
    """Older files lack columns that came later; none has those that its directory names."""
    given = {TOPIC: topic, DATE: day}
    arrays = []
    for field in schema:
        if field.name in batch.schema.names:
            arrays.append(batch.column(field.name).cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given.get(field.name), field.type), batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
