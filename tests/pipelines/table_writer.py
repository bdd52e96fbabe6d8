"""A program that appends batches to a table until it is killed: `python -m tests.pipelines.table_writer`."""

from __future__ import annotations

import sys
import time
from itertools import count

from postroad.pipelines.tables import TableAddress, open_table
from postroad.pipelines.tables.files import Files
from postroad.pipelines.tables.table import Batch
from tests.pipelines.batches import record_batch

PAUSE_S = 0.005  # the fewer files, the sooner they are read


def main(location: str, format_: str) -> None:
    table = open_table(TableAddress(location, format_))
    first = (table.recorded("q", []).batch or -1) + 1
    for number in count(max(0, first - 1)):  # the last one again, as Spark would
        end = number * 10
        files = Files(table)
        files.write(record_batch(end, 10))
        table.append(Batch("q", number, tuple(files.finish())), {})
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
