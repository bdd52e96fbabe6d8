"""Derived tables of Apache Iceberg, written by `pyiceberg`.

Settings are properties `postroad.<name>` of the table, notes one property, `postroad.notes`, in JSON. New
columns, files that come and go, and the notes are one transaction, of which the table says that it must not
be repeated over somebody else's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.table import Table as IcebergTable

from postroad.pipelines.errors import WrongTable
from postroad.pipelines.tables.catalogs import check_location, has_catalog, open_catalog
from postroad.pipelines.tables.derived import Change, DerivedTable, Loaded, TableFile
from postroad.pipelines.tables.iceberg import conflicts
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.schema import plain

_SETTING: Final = "postroad."
_NOTES: Final = "postroad.notes"
_NAME_MAPPING: Final = "schema.name-mapping.default"  # files say no field ids: names count
_PROPERTIES: Final = {
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    # A producer's clock may be so wrong that pyiceberg can't name the time.
    "write.metadata.metrics.column.message_time": "none",
}


class DerivedIceberg(DerivedTable):
    format: ClassVar[str] = "iceberg"
    data: ClassVar[str] = "data/"

    def __init__(self, location: Location, catalog: str, name: str) -> None:
        super().__init__(location, catalog, name)
        check_location(location)

    def is_there(self) -> bool:
        if not has_catalog(self.location, self._catalog_name):
            return False
        return open_catalog(self.location, self._catalog_name).table_exists(self._name)

    def create(self, schema: Any, settings: Mapping[str, str]) -> None:
        self.location.make_directory()
        catalog = open_catalog(self.location, self._catalog_name)
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        chosen = {f"{_SETTING}{name}": text for name, text in settings.items()}
        with catalog.create_table_transaction(
            self._name, schema, location=self.location.literal_url, properties={**_PROPERTIES, **chosen}
        ) as creation:
            mapping = creation.table_metadata.schema().name_mapping.model_dump_json()
            creation.set_properties({_NAME_MAPPING: mapping})

    def load(self, names: Collection[str] = ()) -> Loaded:
        table = self._opened()
        notes: dict[str, int] = json.loads(table.properties.get(_NOTES, "{}"))
        files = {}
        for task in table.scan().plan_files():
            path = self.location.relative(task.file.file_path).removeprefix(self.data)
            files[path] = TableFile(path, task.file.file_size_in_bytes)
        return Loaded(
            table,
            pa.schema([pa.field(field.name, plain(field.type)) for field in table.schema().as_arrow()]),
            files,
            {
                name.removeprefix(_SETTING): text
                for name, text in table.properties.items()
                if name.startswith(_SETTING) and name != _NOTES
            },
            {name: notes[name] for name in names if name in notes},
        )

    def commit(self, loaded: Loaded, change: Change) -> None:
        table: IcebergTable = loaded.handle
        notes = {**json.loads(table.properties.get(_NOTES, "{}")), **change.notes}
        new = [field for field in change.schema if field.name not in loaded.schema.names]
        gone = {file.path for file in change.removed}
        with conflicts(), table.transaction() as transaction:
            if new:
                with transaction.update_schema() as update:
                    update.union_by_name(pa.schema(new))
            if change.added or gone:
                snapshot = transaction.update_snapshot()
                with snapshot.overwrite() if gone else snapshot.fast_append() as written:
                    for task in table.scan().plan_files() if gone else ():
                        if self.location.relative(task.file.file_path).removeprefix(self.data) in gone:
                            written.delete_data_file(task.file)
                    for file in change.added:
                        url = f"{self.location.literal_url}/{self.data}{file.path}"
                        metadata = transaction.table_metadata
                        written.append_data_file(parquet_file_to_data_file(table.io, metadata, url))
            transaction.set_properties({_NOTES: json.dumps(notes)})

    def tidy(self, keep_s: float) -> None:
        before = datetime.now(UTC) - timedelta(seconds=keep_s)
        with conflicts():
            self._opened().maintenance.expire_snapshots().older_than(before).commit()
        table = self._opened()
        used = {self.location.relative(path) for path in table.inspect.all_files()["file_path"].to_pylist()}
        for file in self.location.files(self.data.rstrip("/")):
            path = self.location.relative(file.path)
            if path not in used and file.mtime < before:
                self.location.delete(path)

    def _opened(self) -> IcebergTable:
        if not has_catalog(self.location, self._catalog_name):
            raise WrongTable(
                f"{self.location} holds an Iceberg table of another catalogue: name it with --catalog"
            )
        try:
            return open_catalog(self.location, self._catalog_name).load_table(self._name)
        except NoSuchTableError:
            raise WrongTable(f"the catalogue has no table {self._name}: name it with --table") from None
