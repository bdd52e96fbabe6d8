"""Tables of an archive: Delta, Iceberg, or plain Parquet, each record in them once.

`table` is what they share and why it holds; `delta`, `iceberg` and `parquet` are how each format makes a
commit atomic; `files` writes rows as Parquet; `source` and `sink` are all of it as Spark sees it. No format
needs a jar, and each can be read without Spark. `open_table` is where to begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Final

from postroad.pipelines.errors import NotInstalled, PipelineError, WrongTable
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.table import Snapshot, Table

__all__ = [
    "FORMATS",
    "Snapshot",
    "Table",
    "TableAddress",
    "create_table",
    "find_table",
    "format_at",
    "open_table",
]

# `module:class` below this package: a format's library is loaded when it is used.
FORMATS: Final = {"delta": "delta:Delta", "iceberg": "iceberg:Iceberg", "parquet": "parquet:Parquet"}
OURS: Final = "_postroad"  # our own directory in a table's: checkpoint, log

_PACKAGES: Final = {"delta": "deltalake", "iceberg": "pyiceberg"}
_MARKS: Final = {"delta": "_delta_log", "iceberg": "metadata", "parquet": f"{OURS}/log"}


@dataclass(frozen=True)
class TableAddress:
    """Where a table is. `catalog` and `table` are for Iceberg: the catalogue's URL, and the name in it."""

    location: str
    format: str
    catalog: str = ""
    table: str = "postroad.archive"

    def options(self) -> dict[str, str]:
        return {f"table.{name}": value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TableAddress:
        names = cls.__dataclass_fields__
        return cls(**{name: options[f"table.{name}"] for name in names})


def open_table(address: TableAddress) -> Table:
    """The table at the address; whether it is there, it says itself."""
    module, _, name = FORMATS[address.format].partition(":")
    try:
        made: type[Table] = getattr(import_module(f"{__name__}.{module}"), name)
    except ImportError as error:
        package = _PACKAGES.get(address.format, error.name)
        raise NotInstalled(
            f"{address.format} tables need {package}, which is not installed: pip install 'postroad[spark]'"
        ) from None
    return made.at(Location(address.location), address.catalog, address.table)


def create_table(address: TableAddress) -> Table:
    """The table at the address, created if nothing is there. WrongTable if something else is.

    PipelineError if nothing can be read or written there.
    """
    table = open_table(address)
    try:
        return _created(table, address)
    except OSError as error:
        raise PipelineError(f"{table.location} can't be read or written: {error}") from None


def _created(table: Table, address: TableAddress) -> Table:
    location = table.location
    found = format_at(location)
    if found is not None and found != address.format:
        raise WrongTable(
            f"{location} holds a table in the format {found}, not {address.format}: "
            f"say --format {found}, or choose another directory"
        )
    if table.is_there():
        table.schema()
    elif any(name != OURS for name in location.names()):
        raise WrongTable(f"{location} is not empty, and no archive is in it: choose another directory")
    else:
        _check_writable(location)
        table.create()
    return table


def _check_writable(location: Location) -> None:
    """OSError where no file can be written: libraries say that in ways of their own."""
    probe = f"{OURS}/writable"
    location.create(probe).close()
    location.delete(probe)


def find_table(location: str, catalog: str = "", table: str = "postroad.archive") -> Table:
    """The table that is there, of whichever format. WrongTable if there is none."""
    format_ = "iceberg" if catalog else format_at(Location(location))
    if format_ is None:
        raise WrongTable(
            f"no archive is at {Location(location)}: make one with `postroad pipeline archive --to`"
        )
    found = open_table(TableAddress(location, format_, catalog, table))
    found.schema()
    return found


def format_at(location: Location) -> str | None:
    """The format of the table there; None if there is none. WrongTable if it is a file."""
    if location.directory is not None and location.directory.is_file():
        raise WrongTable(f"{location} is a file: choose a directory")
    return next((name for name, mark in _MARKS.items() if location.is_there(mark)), None)
