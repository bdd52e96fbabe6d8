"""How files of an archive are written, as options that Spark carries to wherever they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from postroad.pipelines.tables import TableAddress, open_table
from postroad.pipelines.tables.bad_rows import KEEP, BadRows
from postroad.pipelines.tables.files import Files
from postroad.pipelines.tables.growing_columns import ValueColumns
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.schema import Kind, json_kinds
from postroad.pipelines.tables.schema_columns import SchemaColumns
from postroad.spark.own_schemas import OwnSchemas

# All begin like this, so that they can be told from options of the source. Spark makes names lower case.
_PREFIX: Final = "table."
_JSON: Final = f"{_PREFIX}json"
_KINDS: Final = f"{_PREFIX}jsonkinds"
_BAD_ROWS: Final = f"{_PREFIX}badrows"
_LETTERS: Final = f"{_PREFIX}deadlettertopic"


@dataclass(frozen=True)
class FileSettings:
    """`kinds` are types that columns of values must have; `bad_rows` what becomes of what doesn't fit."""

    address: TableAddress
    has_json: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    bad_rows: str = KEEP
    dead_letter_topic: str = ""

    def options(self) -> dict[str, str]:
        return {
            **self.address.options(),
            _JSON: str(self.has_json).lower(),
            _KINDS: ",".join(f"{name}={kind}" for name, kind in self.kinds.items()),
            _BAD_ROWS: self.bad_rows,
            _LETTERS: self.dead_letter_topic,
        }

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FileSettings:
        """From what `options` gave, whatever else there is."""
        pairs: list[Any] = [part.split("=") for part in options[_KINDS].split(",") if part]
        has_json = options[_JSON] == "true"
        return cls(TableAddress.of(options), has_json, dict(pairs), options[_BAD_ROWS], options[_LETTERS])

    @staticmethod
    def others(options: Mapping[str, str]) -> dict[str, str]:
        """The options that are none of these."""
        return {name: text for name, text in options.items() if not name.startswith(_PREFIX)}

    def files(self, schemas: OwnSchemas | None) -> Files:
        """For one task. `schemas`: how values are read that have one."""
        table = open_table(self.address)
        return Files(table, self._columns(json_kinds(table.schema()), schemas), BadRows(self.bad_rows))

    def _columns(self, known: Mapping[str, Kind], schemas: OwnSchemas | None) -> ValueColumns | None:
        kinds = {**known, **{name: kind for name, kind in self.kinds.items() if name not in known}}
        if schemas is not None:
            return SchemaColumns(kinds, schemas)
        return JsonColumns(kinds) if self.has_json else None
