"""The fields of values that have a registered schema as columns that grow with them (`growing_columns`).

Each message is read by the schema that it was written with, so a table has what was written: a field that a
schema does not have is null in its rows, whatever default later schemas give it. The first message of a new
schema brings the columns of its new fields.

    boolean, string, binary, date, timestamp, decimal   as they are
    int, long; float, double                            bigint; double: so widening changes no column
    enum; a timestamp without a time zone               string
    records, arrays, maps, unions of several types      string, as JSON text
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postroad.pipelines.tables.growing_columns import Bad, GrowingColumns, fits, misfit_of
from postroad.pipelines.tables.schema import BAD, Kind, arrow_of, kind_of, with_json
from postroad.spark.columns import VALUE
from postroad.spark.json_writing import texts
from postroad.spark.lanes import Numbers
from postroad.spark.own_schemas import OwnSchemas, Piece


class _Cells(NamedTuple):
    """What some rows have in a column."""

    rows: Numbers
    values: Any


class SchemaColumns(GrowingColumns):
    """The columns of an archive."""

    def __init__(self, known: Mapping[str, Kind], schemas: OwnSchemas) -> None:
        super().__init__({BAD: "string", **known})
        self._schemas = schemas

    def extend(self, batch: Any) -> Any:
        """The batch with `bad` and the columns after its own. Raises RegistryUnavailable."""
        pieces, bad = self._schemas.read(batch.column(VALUE))
        found: dict[str, list[_Cells]] = {}
        for piece in pieces:
            good = np.array([row not in bad for row in piece.rows.tolist()], bool) if bad else None
            for name, cells in self._of_piece(_only(piece, good), bad).items():
                found.setdefault(name, []).append(cells)
        rows = batch.num_rows
        reasons = pa.array([bad.get(row) for row in range(rows)], pa.string())
        arrays = [
            reasons if name == BAD else _column(found.get(name, []), rows, arrow_of(kind))
            for name, kind in self.kinds.items()
        ]
        return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=with_json(self.kinds))

    def _of_piece(self, piece: Piece, bad: dict[int, str]) -> dict[str, _Cells]:
        """The cells of its rows; what does not fit is noted as bad."""
        new: dict[str, Kind] = {}
        try:
            columns, good = self._agreed(piece, new, bad)
            if not good.any():
                return {}
            self.add(new)
        except Bad as error:
            bad.update(dict.fromkeys(piece.rows.tolist(), str(error)))
            return {}
        which = pa.array(good)
        rows = piece.rows[good]
        return {name: _Cells(rows, values.filter(which)) for name, values in columns.items()}

    def _agreed(self, piece: Piece, new: dict[str, Kind], bad: dict[int, str]) -> tuple[dict[str, Any], Any]:
        """Arrays by column, and which rows fit all of them."""
        good = np.ones(len(piece.rows), bool)
        columns: dict[str, Any] = {}
        taken: set[str] = set()
        for number, field in enumerate(piece.values.type):
            if pa.types.is_null(field.type):
                continue
            values = _simple(piece.values.field(number))
            kind = kind_of(values.type)
            name, column = self.agreed(field.name, kind, new, taken)
            if fits(kind, column):
                columns[name] = values
                continue
            wrong = values.is_valid().to_numpy(zero_copy_only=False)
            why = misfit_of(field.name, kind, column)
            bad.update(dict.fromkeys(piece.rows[wrong & good].tolist(), why))
            good &= ~wrong
        return columns, good


def _only(piece: Piece, good: Any) -> Piece:
    if good is None or good.all():
        return piece
    return Piece(piece.rows[good], piece.values.filter(pa.array(good)))


def _simple(values: Any) -> Any:
    """As a column of an archive has it."""
    kind = values.type
    if pa.types.is_nested(kind):
        return pc.if_else(values.is_valid(), pa.array(texts(values), pa.binary()).cast(pa.string()), None)
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return values.cast(pa.string())
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    return values.cast(pa.float64()) if pa.types.is_floating(kind) else values


def _column(cells: list[_Cells], rows: int, kind: Any) -> Any:
    """The column of all rows, null where no cell is."""
    if not cells:
        return pa.nulls(rows, kind)
    values = pa.concat_arrays([each.values.cast(kind, safe=False) for each in cells])
    at = np.full(rows, -1, np.int64)
    numbers = np.concatenate([each.rows for each in cells])
    at[numbers] = np.arange(len(numbers))
    if len(numbers) == rows and (at == np.arange(rows)).all():
        return values
    return values.take(pa.array(at, mask=at < 0))
