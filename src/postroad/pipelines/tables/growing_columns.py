"""Columns of values, for tables whose columns grow with their data.

A field that no column has yet makes a new one, of its first value's type; as long as it is not in the table,
a column of whole numbers becomes double where a fraction comes. A field of another type than its column (a
whole number fits a double, a decimal a larger one; nothing else is bent) makes the row a bad one, which makes
no column.

Names: SQL can't tell `Id` from `id`, so the first spelling counts. A name that the archive uses itself
gets `json_` before it; characters that a format doesn't take in a name become `_`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from postroad.pipelines.tables.schema import RESERVED, Kind, decimal_of

COLUMNS_MAX: Final = 1000  # a producer that puts ids into names must not make a table of them
_NOT_IN_NAMES: Final = re.compile(r"[\x00-\x20\x7f,;{}()=.`\"]")
_WIDER: Final = {("bigint", "double"), ("double", "bigint")}


class Bad(Exception):
    """Why a value has no columns."""


class ValueColumns(Protocol):
    """How values become columns. `kinds` are the columns so far."""

    kinds: dict[str, Kind]

    def extend(self, batch: Any) -> Any:
        """The batch of an archive with `bad` and the columns of its values after its own."""


class GrowingColumns:
    """`kinds` are the columns so far, those that were found among them.

    `reserved`: names, in lower case, that no field's column has; `spelled`: how some are to be written.
    """

    def __init__(
        self, known: Mapping[str, Kind], reserved: Collection[str] = RESERVED, spelled: Collection[str] = ()
    ) -> None:
        self.kinds: dict[str, Kind] = dict(known)
        self._known = frozenset(self.kinds)
        self._reserved = reserved
        self._spelled = {name.lower(): name for name in (*spelled, *self.kinds)}
        self._column_of: dict[str, str] = {}  # field → column

    def agreed(self, field: str, kind: Kind, new: dict[str, Kind], taken: set[str]) -> tuple[str, Kind]:
        """The column of a field that has this kind, and the column's own kind. Columns that there are not yet
        are noted in `new`, those of this row in `taken`. Raises Bad."""
        name = self._column(field)
        column = self.kinds.get(name) or new.setdefault(name, kind)
        if name.lower() in taken:
            raise Bad(f"two fields are for column {name}")
        taken.add(name.lower())
        if (column, kind) == ("bigint", "double") and name not in self._known:
            column = new[name] = kind
        return name, column

    def add(self, new: Mapping[str, Kind]) -> None:
        """A good row has them. Raises Bad."""
        if new and len({*self.kinds, *new}) > COLUMNS_MAX:
            raise Bad(f"its fields would be more than {COLUMNS_MAX} columns")
        for name, kind in new.items():
            self.kinds[name] = kind
            self._spelled[name.lower()] = name

    def _column(self, field: str) -> str:
        name = self._column_of.get(field)
        if name is None:
            plain = _NOT_IN_NAMES.sub("_", field) or "_"
            plain = f"json_{plain}" if plain.lower() in self._reserved else plain
            # Not remembered before a good row has made the column: a bad one leaves no trace.
            name = self._spelled.get(plain.lower(), plain)
            if name in self.kinds:
                self._column_of[field] = name
        return name


def fits(kind: Kind, column: Kind) -> bool:
    """Whether every value of the kind has its place in the column."""
    if kind == column or (kind, column) == ("bigint", "double"):
        return True
    one, other = decimal_of(kind), decimal_of(column)
    return bool(one and other and one[1] <= other[1] and one[0] - one[1] <= other[0] - other[1])


def misfit_of(field: str, kind: Kind, column: Kind) -> str:
    """Why a row is bad."""
    return f"field {field} is {kind}, and its column {column}"


def merged(known: Mapping[str, Kind], found: Iterable[Mapping[str, Kind]]) -> dict[str, Kind]:
    """The table's columns with those that tasks found apart from each other.

    What the table has stays. Of a new column the first task's type and spelling count, but for whole
    numbers that are fractions elsewhere.
    """
    result = dict(known)
    spelled = {name.lower(): name for name in result}
    for kinds in found:
        for name, kind in kinds.items():
            name = spelled.setdefault(name.lower(), name)
            before = result.setdefault(name, kind)
            if name not in known and (before, kind) in _WIDER:
                result[name] = "double"
    return result


def fits_table(kinds: Mapping[str, Kind], table: Mapping[str, Kind]) -> bool:
    """Whether a file's columns are the table's."""
    return all(table.get(name) == kind for name, kind in kinds.items())


def is_plain(name: str) -> bool:
    """Whether a column can have the name of its field."""
    return bool(name) and not _NOT_IN_NAMES.search(name)
