"""The fields of JSON values as columns that grow with them (`growing_columns`).

A value that is a JSON object gives each of its fields to the column of that name: true and false are
boolean, whole numbers bigint, others double, text string, and objects and arrays string, as JSON text. A
value that is no JSON object is bad, as is one of which a field does not fit its column. It stays in the
archive with its value and all, has no JSON columns, and `bad` says why.
A tombstone is not bad; it has no fields.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from postroad.pipelines.tables.growing_columns import Bad, GrowingColumns, fits, misfit_of
from postroad.pipelines.tables.schema import BAD, Kind, arrow_of, with_json
from postroad.spark.columns import VALUE

_BIGINT: Final = range(-(2**63), 2**63)

_decode = msgspec.json.Decoder().decode


class JsonCells(GrowingColumns):
    """The fields of JSON objects as cells."""

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
            kind, cell = typed(field, content)
            name, column = self.agreed(field, kind, new, taken)
            cells[name] = fitting(field, cell, kind, column)
        self.add(new)
        return cells


class JsonColumns(JsonCells):
    """The columns of an archive."""

    def __init__(self, known: Mapping[str, Kind]) -> None:
        super().__init__({BAD: "string", **known})

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
                bad[number] = str(error)
        columns[BAD] = bad
        arrays = [pa.array(columns.get(name, nothing), arrow_of(kind)) for name, kind in self.kinds.items()]
        return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=with_json(self.kinds))


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
    if not fits(kind, column):
        raise Bad(misfit_of(field, kind, column))
    return float(cell)
