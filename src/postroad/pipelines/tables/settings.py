"""How files of an archive are written, as options that Spark carries to wherever they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from postroad.pipelines.tables import TableAddress, open_table
from postroad.pipelines.tables.files import Files
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.schema import Kind, json_kinds

# All begin like this, so that they can be told from options of the source. Spark makes names lower case.
_PREFIX: Final = "table."
_JSON: Final = f"{_PREFIX}json"
_KINDS: Final = f"{_PREFIX}jsonkinds"
_BAD_ROWS: Final = f"{_PREFIX}badrows"
_FAIL: Final = "fail"


@dataclass(frozen=True)
class FileSettings:
    """`kinds` are types that JSON columns must have; `fails`: a value that doesn't fit is an error."""

    address: TableAddress
    has_json: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    fails: bool = False

    def options(self) -> dict[str, str]:
        return {
            **self.address.options(),
            _JSON: str(self.has_json).lower(),
            _KINDS: ",".join(f"{name}={kind}" for name, kind in self.kinds.items()),
            _BAD_ROWS: _FAIL if self.fails else "keep",
        }

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FileSettings:
        """From what `options` gave, whatever else there is."""
        pairs: list[Any] = [part.split("=") for part in options[_KINDS].split(",") if part]
        has_json, fails = options[_JSON] == "true", options[_BAD_ROWS] == _FAIL
        return cls(TableAddress.of(options), has_json, dict(pairs), fails)

    @staticmethod
    def others(options: Mapping[str, str]) -> dict[str, str]:
        """The options that are none of these."""
        return {name: text for name, text in options.items() if not name.startswith(_PREFIX)}

    def files(self) -> Files:
        """For one task."""
        table = open_table(self.address)
        return Files(table, self._json(json_kinds(table.schema())) if self.has_json else None)

    def _json(self, known: Mapping[str, Kind]) -> JsonColumns:
        new = {name: kind for name, kind in self.kinds.items() if name not in known}
        return JsonColumns({**known, **new}, fails=self.fails)
