"""A driver that merges two topics into tables at once until it is killed, as a program of its own."""

from __future__ import annotations

import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from postroad.pipelines.merge import MergeSettings, merge
from postroad.pipelines.session import session

STEP_OFFSETS = 60


def settings_of(bootstrap: str, rows: str, events: str, home: Path, **more: object) -> list[MergeSettings]:
    """A compacted topic of rows by their messages' keys, and a database's events by two columns."""
    return [
        MergeSettings(bootstrap, rows, str(home / "delta"), **more),  # type: ignore[arg-type]
        MergeSettings(
            bootstrap,
            events,
            str(home / "iceberg"),
            format="iceberg",
            values="debezium",
            key=("id", "region"),
            **more,  # type: ignore[arg-type]
        ),
    ]


def main(bootstrap: str, rows: str, events: str, home: str) -> None:
    config = {"spark.driver.memory": "1g", "spark.local.dir": f"{home}/local"}
    both = settings_of(bootstrap, rows, events, Path(home), every_s=0.1, step_offsets=STEP_OFFSETS, buckets=3)
    with session("driver", "local[2]", config) as spark, ThreadPoolExecutor(len(both)) as threads:
        running = [threads.submit(merge, spark, each) for each in both]
        for each in as_completed(running):  # one that fails is not to be overlooked beside the other
            if each.exception() is not None:
                traceback.print_exception(each.exception())
                os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
