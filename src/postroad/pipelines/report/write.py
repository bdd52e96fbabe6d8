"""A report's files: `report.html`, and a Parquet file for each table beside it."""

from __future__ import annotations

from typing import Final

import pyarrow.parquet as pq

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.report.measured import Measured
from postroad.pipelines.tables.location import Location

PAGE: Final = "report.html"


def check(location: Location) -> None:
    """Before anything is measured: PipelineError if nothing can be written there."""
    if location.directory is not None and location.directory.is_file():
        raise PipelineError(f"{location} is a file: choose a directory for the report")


def write(location: Location, page: str, measured: Measured) -> str:
    """The page comes last: if it is there the tables are, too. Gives the page's path or URL.

    An older report in the same place is replaced.
    """
    try:
        for name, table in measured.tables().items():
            with location.create(f"{name}.parquet") as file:
                pq.write_table(table, file)
        with location.create(PAGE) as file:
            file.write(page.encode())
    except OSError as error:
        raise PipelineError(f"the report can't be written to {location}: {error}") from None
    return location.below(PAGE)
