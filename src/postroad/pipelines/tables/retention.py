"""Messages that are older than a moment leave a table: all of them, and nothing that is younger.

Dates that are over go by their names, unread. In the date in which the moment lies, a file's footer says what
it has. One that has both is written again without what is older, which takes its place in one commit.

Ends stay as they are: what is deleted was archived.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from postroad.pipelines.tables.compaction import aligned
from postroad.pipelines.tables.files import PartFile
from postroad.pipelines.tables.schema import DAY_MAX, DAY_MIN, DAY_US, EPOCH
from postroad.pipelines.tables.table import (
    COMMIT_ATTEMPTS,
    Conflict,
    DataFile,
    Table,
    TableFile,
    over_conflicts,
)
from postroad.spark.columns import TIMESTAMP, TYPES


def delete_before(table: Table, moment_us: int) -> int:
    """How many files are no longer in the table: deleted, or replaced by one without what was older.

    Raises Conflict if others commit all the time; what was done before that stays.
    """
    day = EPOCH + timedelta(days=min(max(moment_us // DAY_US, DAY_MIN), DAY_MAX))
    gone = over_conflicts(lambda: table.delete_dates_before(day))
    for _ in range(COMMIT_ATTEMPTS):
        left = [file for file in over_conflicts(table.files) if file.date == day.isoformat()]
        done = [_shorten(table, file, moment_us) for file in left]
        gone += sum(is_done is True for is_done in done)
        if None not in done:
            return gone
    raise Conflict("files are compacted all the time")


def _shorten(table: Table, file: TableFile, moment_us: int) -> bool | None:
    """True if it had rows that are gone now, False if it had none; None if somebody else took it away."""
    shorter: DataFile | None = None
    try:
        with table.location.read(file.path) as stream:
            opened = pq.ParquetFile(stream)
            first, last = _times(opened)
            if first is not None and first >= moment_us:
                return False
            if last is None or last >= moment_us:
                shorter, had_older = _younger(table, file, opened, moment_us)
                if not had_older:
                    return False
    except FileNotFoundError:
        return None
    is_gone = over_conflicts(lambda: table.swap([file], shorter, are_rows_same=False))
    if not is_gone and shorter is not None:
        table.discard([shorter])
    return True if is_gone else None


def _younger(table: Table, file: TableFile, opened: Any, moment_us: int) -> tuple[DataFile | None, bool]:
    """A new file with the rows that stay, None if there are none; and whether there were any others."""
    day, schema = date.fromisoformat(file.date), table.schema()
    moment = pa.scalar(moment_us, pa.int64()).cast(TYPES[TIMESTAMP])
    shorter = PartFile(table, file.topic, day, schema)
    try:
        before = 0
        for batch in opened.iter_batches():
            rows = aligned(batch, schema, file.topic, day)
            shorter.write(rows.filter(pc.greater_equal(rows.column(TIMESTAMP), moment)))
            before += rows.num_rows
        if shorter.rows in (0, before):
            shorter.abandon()
            return None, shorter.rows != before
        return shorter.finish(), True
    except BaseException:
        shorter.abandon()
        raise


def _times(opened: Any) -> tuple[int | None, int | None]:
    """The first and the last time in the file in microseconds, as its footer says; None where it doesn't."""
    paths = [opened.schema.column(number).path for number in range(len(opened.schema))]
    if TIMESTAMP not in paths:
        return None, None
    column, found = paths.index(TIMESTAMP), opened.metadata
    groups = [found.row_group(number).column(column).statistics for number in range(found.num_row_groups)]
    if not groups or any(each is None or not each.has_min_max or each.null_count for each in groups):
        return None, None
    bounds = pa.array([bound for each in groups for bound in (each.min, each.max)])
    micros = bounds.cast(TYPES[TIMESTAMP]).cast(pa.int64()).to_pylist()
    return min(micros), max(micros)
