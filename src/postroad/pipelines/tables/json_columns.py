"""The fields of JSON values as columns, for tables whose columns grow with their data.

A value that is a JSON object gives each of its fields to the column of that name: true and false are
boolean, whole numbers bigint, others double, text string, and objects and arrays string, as JSON text.
A field that no column has yet makes a new one, of its first value's type; as long as it is not in the table,
a column of whole numbers becomes double where a fraction comes. A value that is no JSON object, or a field of
another type than its column (a whole number fits a double; nothing else is bent), makes the row a bad one. It
stays in the archive with its value and all, has no JSON columns, and `bad` says why.
A tombstone is not bad; it has no fields.

Names: SQL can't tell `Id` from `id`, so the first spelling counts. A name that the archive uses itself
gets `json_` before it; characters that a format doesn't take in a name become `_`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables.schema import BAD, KINDS, RESERVED, Kind, with_json
from postroad.spark.columns import OFFSET, PARTITION, TOPIC, VALUE

COLUMNS_MAX: Final = 1000  # a producer that puts ids into names must not make a table of them
_BIGINT: Final = range(-(2**63), 2**63)
_NOT_IN_NAMES: Final = re.compile(r"[\x00-\x20\x7f,;{}()=.`\"]")
_WIDER: Final = {("bigint", "double"), ("double", "bigint")}

_decode = msgspec.json.Decoder().decode


class JsonCells:
    """The fields of JSON objects as cells: `kinds` are the columns so far, those that were found among them.

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

    def of(self, value: bytes | None) -> dict[str, Any]:
        """What a row has in each column. Raises Bad; then no column is new."""
        if value is None:
            return {}
        fields = json_object(value)
        cells: dict[str, Any] = {}
        new: dict[str, Kind] = {}
        taken: set[str] = set()
        for field, content in fields.items():
            if content is None:
                continue
            name = self._column(field)
            kind, cell = typed(field, content)
            known = self.kinds.get(name) or new.setdefault(name, kind)
            if name.lower() in taken:
                raise Bad(f"two fields are for column {name}")
            taken.add(name.lower())
            if (known, kind) == ("bigint", "double") and name not in self._known:
                known = new[name] = kind
            cells[name] = fitting(field, cell, kind, known)
        self._add(new)
        return cells

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

    def _add(self, new: Mapping[str, Kind]) -> None:
        if new and len({*self.kinds, *new}) > COLUMNS_MAX:
            raise Bad(f"its fields would be more than {COLUMNS_MAX} columns")
        for name, kind in new.items():
            self.kinds[name] = kind
            self._spelled[name.lower()] = name


class JsonColumns(JsonCells):
    """The columns of an archive. `fails`: a bad row is an error instead."""

    def __init__(self, known: Mapping[str, Kind], *, fails: bool = False) -> None:
        super().__init__({BAD: "string", **known})
        self._fails = fails

    def extend(self, batch: Any) -> Any:
        """The batch with `bad` and the JSON columns after its own."""
        rows = batch.num_rows
        nothing: list[Any] = [None] * rows
        columns: defaultdict[str, list[Any]] = defaultdict(nothing.copy)
        bad: list[str | None] = [None] * rows
        for number, value in enumerate(batch.column(VALUE).to_pylist()):
            try:
                for name, cell in self.of(value).items():
                    columns[name][number] = cell
            except Bad as error:
                why = str(error)
                if self._fails:
                    raise self._failed(batch, number, why) from None
                bad[number] = why
        columns[BAD] = bad
        arrays = [pa.array(columns.get(name, nothing), KINDS[kind]) for name, kind in self.kinds.items()]
        return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=with_json(self.kinds))

    def _failed(self, batch: Any, number: int, why: str) -> PipelineError:
        topic, partition, offset = (batch.column(name)[number] for name in (TOPIC, PARTITION, OFFSET))
        return PipelineError(
            f"{topic}/{partition} offset {offset}: {why}. Nothing of this batch was archived; "
            "to archive such rows with the reason beside them, leave --bad-rows at keep"
        )


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


class Bad(Exception):
    """Why a value has no columns."""


def json_object(value: bytes) -> dict[str, Any]:
    """The fields of a JSON object. Raises Bad if it is none."""
    try:
        fields = _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Bad(f"not JSON: {error}") from None
    except RecursionError:
        raise Bad("its JSON is nested too deeply") from None
    if not isinstance(fields, dict):
        raise Bad("JSON, but no object")
    return fields


def typed(field: str, content: Any) -> tuple[Kind, Any]:
    """A field's kind, and the cell. Raises Bad."""
    if isinstance(content, bool):
        return "boolean", content
    if isinstance(content, int):
        if content not in _BIGINT:
            raise Bad(f"field {field}: the number needs more than 64 bits")
        return "bigint", content
    if isinstance(content, float):
        return "double", content
    if isinstance(content, str):
        return "string", content
    try:
        return "string", msgspec.json.encode(content).decode()
    except RecursionError:
        raise Bad("its JSON is nested too deeply") from None


def fitting(field: str, cell: Any, kind: Kind, column: Kind) -> Any:
    """The cell as the column has it. Raises Bad."""
    if kind == column:
        return cell
    if (kind, column) == ("bigint", "double"):
        return float(cell)
    raise Bad(f"field {field} is {kind}, and its column {column}")
