"""Tables that are made of topics and of other tables: merged by key, or the results of SQL.

They have columns of their own, no partitions, and files that a commit adds and takes away. A commit is made
over what was read before it and over nothing else: whoever comes second gets a Conflict and looks again. In
the same commit are notes, numbers by name, that say what the table is made of; so a kill at any moment
leaves a step wholly in the table or wholly out of it, and whoever goes on knows where.

A file's first directory is its group (`merged.py` says what that is for): readers don't see it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, NamedTuple

from postroad.pipelines.errors import NotInstalled, PipelineError, WrongTable
from postroad.pipelines.tables import OURS, TableAddress, format_at
from postroad.pipelines.tables.location import Location

FORMATS: Final = {"delta": "derived_delta:DerivedDelta", "iceberg": "derived_iceberg:DerivedIceberg"}
KEPT_S_MIN: Final = 3600.0  # files that a reader may still read, or a step is about to commit


class TableFile(NamedTuple):
    """A file of the table. `path` is below its location."""

    path: str
    bytes: int

    @property
    def group(self) -> str:
        return self.path.partition("/")[0]


class NewFile(NamedTuple):
    """A file that a task wrote, and that no commit knows yet."""

    path: str
    bytes: int
    rows: int


class Loaded(NamedTuple):
    """A table at one moment; `handle` is the format's own view of that moment."""

    handle: Any
    schema: Any  # Arrow's
    files: dict[str, TableFile]  # by path
    settings: dict[str, str]
    notes: dict[str, int]


@dataclass(frozen=True)
class Change:
    """What one commit does. `schema` is the whole table's from then on, which may have new columns at its
    end."""

    schema: Any
    notes: Mapping[str, int]
    added: Sequence[NewFile] = ()
    removed: Sequence[TableFile] = ()


class DerivedTable(ABC):
    """A table at a location. Its methods reach the storage; the object itself holds no state."""

    format: ClassVar[str]
    data: ClassVar[str] = ""  # the directory in which groups are, with a slash

    def __init__(self, location: Location, catalog: str, name: str) -> None:
        self.location = location
        self._catalog_name = catalog
        self._name = name

    @abstractmethod
    def is_there(self) -> bool: ...

    @abstractmethod
    def create(self, schema: Any, settings: Mapping[str, str]) -> None:
        """An empty table is there afterwards. The settings stay as they are now."""

    @abstractmethod
    def load(self, names: Collection[str] = ()) -> Loaded:
        """The table now, with the notes of these names, as far as there are any."""

    @abstractmethod
    def commit(self, loaded: Loaded, change: Change) -> None:
        """All of it is in the table afterwards. Raises Conflict if the table is not as it was loaded; then
        it may be that it is by this very commit (its answer was lost)."""

    @abstractmethod
    def tidy(self, keep_s: float) -> None:
        """What no version of the last `keep_s` seconds needs is deleted. May raise Conflict."""


def open_derived(address: TableAddress) -> DerivedTable:
    """The table at the address; whether it is there, it says itself."""
    if address.format not in FORMATS:
        raise PipelineError(f"such a table is {' or '.join(FORMATS)}, not {address.format}")
    module, _, name = FORMATS[address.format].partition(":")
    try:
        made: type[DerivedTable] = getattr(import_module(f"{__package__}.{module}"), name)
    except ImportError as error:
        raise NotInstalled(
            f"{address.format} tables need {error.name}, which is not installed: "
            "pip install 'postroad[spark]'"
        ) from None
    return made(Location(address.location), address.catalog, address.table)


def create_derived(address: TableAddress, schema: Any, settings: Mapping[str, str]) -> DerivedTable:
    """The table at the address, created if nothing is there.

    WrongTable if something else is, or one that was made with other settings; PipelineError if nothing can be
    read or written there.
    """
    table = open_derived(address)
    try:
        if not table.is_there():
            _check_is_empty(table.location)
            table.create(schema, settings)
    except OSError as error:
        raise PipelineError(f"{table.location} can't be read or written: {error}") from None
    _check_settings(table.location, table.load().settings, settings)
    return table


def _check_is_empty(location: Location) -> None:
    if (found := format_at(location)) is not None:
        raise WrongTable(f"{location} holds a table in the format {found}: choose another directory")
    if any(name != OURS for name in location.names()):
        raise WrongTable(f"{location} is not empty, and no such table is in it: choose another directory")


def _check_settings(location: Location, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for name, text in wanted.items():
        if name not in found:
            raise WrongTable(f"{location} holds a table that was not made by this: choose another directory")
        if found[name] != text:
            raise WrongTable(
                f"{location} was made with {name} {found[name]!r}, and now it is {text!r}: "
                f"keep to that, or choose another directory"
            )
