"""Derived tables of Delta Lake, written by `deltalake`.

Settings are properties `postroad.<name>` of the table, notes application transactions `postroad/<name>`. A
commit is made for the version after the one that was loaded, with no attempt after that: what others did
meanwhile (to the same files, it may be) is then seen before it is decided anew. New columns are a commit of
their own before it; a crash after it leaves columns that are null until the next.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction

from postroad.pipelines.tables.delta import check_location, conflicts
from postroad.pipelines.tables.derived import Change, DerivedTable, Loaded, NewFile, TableFile
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.schema import plain
from postroad.pipelines.tables.table import Conflict

_SETTING: Final = "postroad."
_NOTE: Final = "postroad/"


class DerivedDelta(DerivedTable):
    format: ClassVar[str] = "delta"

    def __init__(self, location: Location, catalog: str, name: str) -> None:
        super().__init__(location, catalog, name)
        check_location(location)

    def is_there(self) -> bool:
        return self.location.is_there("_delta_log")

    def create(self, schema: Any, settings: Mapping[str, str]) -> None:
        self.location.make_directory()
        DeltaTable.create(
            str(self.location),
            schema,
            name="postroad",
            configuration={f"{_SETTING}{name}": text for name, text in settings.items()},
            raise_if_key_not_exists=False,
        )

    def load(self, names: Collection[str] = ()) -> Loaded:
        table = DeltaTable(str(self.location))
        actions = pa.table(table.get_add_actions(flatten=True))
        found = zip(map(unquote, actions["path"].to_pylist()), actions["size_bytes"].to_pylist(), strict=True)
        known = {name: table.transaction_version(_NOTE + name) for name in names}
        return Loaded(
            table,
            _schema(table),
            {path: TableFile(path, size) for path, size in found},
            {
                name.removeprefix(_SETTING): str(text)
                for name, text in table.metadata().configuration.items()
                if name.startswith(_SETTING)
            },
            {name: number for name, number in known.items() if number is not None},
        )

    def commit(self, loaded: Loaded, change: Change) -> None:
        table: DeltaTable = loaded.handle
        new = [field for field in change.schema if field.name not in loaded.schema.names]
        if new:
            version = table.version()
            with conflicts():
                table.alter.add_columns(list(Schema.from_arrow(pa.schema(new)).fields))
            table = DeltaTable(str(self.location))
            if table.version() != version + 1:
                raise Conflict(f"version {version + 1} is somebody else's")
        now = int(time.time() * 1000)
        removed = [RemoveAction(file.path, True, now, file.bytes, {}) for file in change.removed]
        notes = [Transaction(_NOTE + name, number) for name, number in sorted(change.notes.items())]
        with conflicts():
            table.create_write_transaction(
                [*(_added(file, now) for file in change.added), *removed],
                mode="append",
                schema=table.schema(),
                partition_by=[],
                commit_properties=CommitProperties(app_transactions=notes, max_commit_retries=0),
            )

    def tidy(self, keep_s: float) -> None:
        table = DeltaTable(str(self.location))
        with conflicts():
            table.vacuum(
                retention_hours=max(1, int(keep_s // 3600)),
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
            )
        table = DeltaTable(str(self.location))
        table.create_checkpoint()
        table.cleanup_metadata()


def _schema(table: DeltaTable) -> Any:
    found = pa.schema(table.schema().to_arrow())
    return pa.schema([pa.field(field.name, plain(field.type)) for field in found])


def _added(file: NewFile, now: int) -> AddAction:
    return AddAction(file.path, file.bytes, {}, now, True, json.dumps({"numRecords": file.rows}))
