"""Apache Iceberg, written by `pyiceberg`: no JVM, no jar.

A commit is one transaction: the files as a snapshot, new columns, and these properties of the table:

    postroad.ends             JSON: {"topic": {"partition": the offset after the last one archived}}
    postroad.topics           JSON: {"topic": which topic of that name it was}
    postroad.query.<query id> the last micro-batch

Without a catalogue of yours the table has one in its own directory (`catalog.db`, SQLite). pyiceberg would
repeat a commit over somebody else's by itself; the table says that it must not, since what we decided
about the batch may no longer be true then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Final, Self

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    TimestamptzType,
)

from postroad.pipelines.errors import WrongTable
from postroad.pipelines.tables.catalogs import check_location, has_catalog, open_catalog
from postroad.pipelines.tables.compaction import Merging, compact
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.schema import (
    EPOCH,
    PARTITIONED_BY,
    RECORD,
    Kind,
    decimal_of,
    json_kinds,
    misfit,
    with_json,
)
from postroad.pipelines.tables.table import (
    KEPT_HOURS,
    Batch,
    Conflict,
    DataFile,
    Optimized,
    Recorded,
    Snapshot,
    Table,
    TableFile,
    TopicPartition,
    over_conflicts,
)

_ENDS: Final = "postroad.ends"
_TOPICS: Final = "postroad.topics"
_QUERY: Final = "postroad.query."
_PROPERTIES: Final = {
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    # Bounds of the columns that queries choose by. Not of timestamps: a producer's clock may be so wrong
    # that pyiceberg can't name the time, and the date says enough.
    "write.metadata.metrics.default": "none",
    **{f"write.metadata.metrics.column.{name}": "full" for name in ("topic", "date", "partition", "offset")},
}
_TYPES: Final[dict[Kind, Any]] = {
    "boolean": BooleanType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
}


class Iceberg(Table):
    format: ClassVar[str] = "iceberg"
    has_partitions_in_files: ClassVar[bool] = True  # where pyiceberg finds a file's partition
    files_below: ClassVar[str] = "data/"

    def __init__(self, location: Location, catalog: str = "", name: str = "postroad.archive") -> None:
        super().__init__(location)
        check_location(location)
        self._catalog_url = catalog
        self._name = name

    @classmethod
    def at(cls, location: Location, catalog: str, name: str) -> Self:
        return cls(location, catalog, name)

    def is_there(self) -> bool:
        return self._has_catalog() and self._catalog().table_exists(self._name)

    def create(self) -> None:
        self.location.make_directory()
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        with (
            catalog.create_table_transaction(
                self._name, RECORD, location=self.location.literal_url, properties=_PROPERTIES
            ) as creation,
            creation.update_spec() as spec,
        ):
            for name in PARTITIONED_BY:
                spec.add_identity(name)

    def schema(self) -> Any:
        return self._schema(self._opened())

    def snapshot(self, topics: Collection[str] = ()) -> Snapshot:
        table = self._opened()
        tasks = list(table.scan().plan_files())
        files = tuple(sorted(task.file.file_path for task in tasks))
        found = {str(task.file.partition[0]) for task in tasks}
        base = self._url(self.files_below.rstrip("/"))
        schema, ends = self._schema(table), _ends(table)
        return Snapshot(schema, base, files, tuple(sorted(found)), ends, _topic_numbers(table))

    def recorded(self, query: str, topics: Collection[str]) -> Recorded:
        table = self._opened()
        number = table.properties.get(_QUERY + query)
        ends = {
            topic_partition: end
            for topic_partition, end in _ends(table).items()
            if topic_partition[0] in topics
        }
        kinds = json_kinds(self._schema(table))
        return Recorded(table, None if number is None else int(number), ends, _topic_numbers(table), kinds)

    def commit(
        self, at: Recorded, batch: Batch, ends: Mapping[TopicPartition, int], new_columns: Mapping[str, Kind]
    ) -> None:
        table: IcebergTable = at.handle
        with conflicts(), table.transaction() as transaction:
            if new_columns:
                with transaction.update_schema() as update:
                    for name, kind in new_columns.items():
                        update.add_column(name, _type(kind))
            if batch.files:
                urls = [self._url(file.path) for file in batch.files]
                transaction.add_files(urls, check_duplicate_files=False)
            transaction.set_properties(
                {
                    _ENDS: _ends_text({**_ends(table), **ends}),
                    _TOPICS: json.dumps(_topic_numbers(table) | batch.topic_numbers),
                    _QUERY + batch.query: str(batch.number),
                }
            )

    def optimize(self, merging: Merging | None = None) -> Optimized:
        small = self.files()
        compact(self, small, self.schema(), self.swap, merging)
        over_conflicts(self._forget)
        return Optimized(len(small), len(self._files(self._opened())))

    def files(self) -> list[TableFile]:
        return [
            TableFile(path, file.partition[0], _day(file.partition[1]), file.file_size_in_bytes)
            for path, file in self._files(self._opened()).items()
        ]

    def swap(
        self, group: Sequence[TableFile], merged: DataFile | None, *, are_rows_same: bool = True
    ) -> bool:
        table = self._opened()
        known = self._files(table)
        if merged is not None and merged.path in known:
            return True
        if any(small.path not in known for small in group):
            return False
        with (
            conflicts(),
            table.transaction() as transaction,
            transaction.update_snapshot().overwrite() as update,
        ):
            for small in group:
                update.delete_data_file(known[small.path])
            if merged is not None:
                url = self._url(merged.path)
                update.append_data_file(parquet_file_to_data_file(table.io, table.metadata, url))
        return True

    def _files(self, table: IcebergTable) -> dict[str, IcebergFile]:
        """By their paths below the location."""
        tasks = table.scan().plan_files()
        return {self.location.relative(task.file.file_path): task.file for task in tasks}

    def delete_dates_before(self, day: date) -> int:
        table = self._opened()
        old = f"date < '{day.isoformat()}'"
        files = sum(1 for _ in table.scan(row_filter=old).plan_files())
        if files:
            with conflicts(), table.transaction() as transaction:
                transaction.delete(old)
        return files

    def _forget(self) -> None:
        """Snapshots that nobody should read any more, and files that no snapshot refers to."""
        before = datetime.now(UTC) - timedelta(hours=KEPT_HOURS)
        table = self._opened()
        with conflicts():
            table.maintenance.expire_snapshots().older_than(before).commit()
        table = self._opened()
        used = {self.location.relative(path) for path in table.inspect.all_files()["file_path"].to_pylist()}
        for file in self.location.files(self.files_below.rstrip("/")):
            path = self.location.relative(file.path)
            if path not in used and file.mtime < before:
                self.location.delete(path)

    def _url(self, path: str) -> str:
        return f"{self.location.literal_url}/{path}"

    def _has_catalog(self) -> bool:
        return has_catalog(self.location, self._catalog_url)

    def _catalog(self) -> Catalog:
        return open_catalog(self.location, self._catalog_url)

    def _opened(self) -> IcebergTable:
        if not self._has_catalog():
            raise WrongTable(
                f"{self.location} holds an Iceberg table of another catalogue: name it with --catalog"
            )
        try:
            return self._catalog().load_table(self._name)
        except NoSuchTableError:
            raise WrongTable(f"the catalogue has no table {self._name}: name it with --table") from None

    def _schema(self, table: IcebergTable) -> Any:
        schema = table.schema().as_arrow()
        why = misfit(schema)
        if why is None and tuple(field.name for field in table.spec().fields) != PARTITIONED_BY:
            why = f"it is not partitioned by {' and '.join(PARTITIONED_BY)}"
        if why is not None:
            raise WrongTable(
                f"{self.location} holds an Iceberg table that is no archive: {why}. Choose another directory"
            )
        return with_json(json_kinds(schema))


@contextmanager
def conflicts() -> Iterator[None]:
    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise Conflict(str(error)) from error


def _type(kind: Kind) -> Any:
    decimal = decimal_of(kind)
    return DecimalType(*decimal) if decimal else _TYPES[kind]


def _ends(table: IcebergTable) -> dict[TopicPartition, int]:
    topics = json.loads(table.properties.get(_ENDS, "{}"))
    return {(topic, int(number)): end for topic, ends in topics.items() for number, end in ends.items()}


def _topic_numbers(table: IcebergTable) -> dict[str, int]:
    found: dict[str, int] = json.loads(table.properties.get(_TOPICS, "{}"))
    return found


def _ends_text(ends: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), end in sorted(ends.items()):
        topics.setdefault(topic, {})[str(partition)] = end
    return json.dumps(topics)


def _day(found: Any) -> str:
    """A partition's date: pyiceberg shows days since 1970."""
    return found.isoformat() if isinstance(found, date) else (EPOCH + timedelta(days=found)).isoformat()
