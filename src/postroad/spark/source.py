"""The data source `postroad`, as Spark meets it. Options are checked here, once, before anything is done."""

from __future__ import annotations

import sys
import uuid
from types import FrameType
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

# Spark imports this whenever a session first meets a Python data source of anybody's: what is
# needed only to read or write is imported then.
if TYPE_CHECKING:
    from postroad.spark.options import ReadOptions, ValueOptions
    from postroad.spark.parsed_values import ParsedValues
    from postroad.spark.reader import Task


_TELLS_FILTERS: Final = "data_source_pushdown_filters.py"  # below pyspark/sql/worker


class PostroadDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "postroad"

    def schema(self) -> str:
        """Where the user gives none: all columns, with the values' fields if they are JSON."""
        from postroad.spark import columns
        from postroad.spark.options import parse_read

        options = parse_read(self.options, streaming=None)
        every = columns.every(headers=options.headers)
        if options.values is None:
            return every.ddl
        kinds = {**columns.DDL, columns.VALUE: _value_ddl(options, options.values)}
        return ", ".join(f"`{name}` {kinds[name]}" for name in every.names)

    def reader(self, schema: StructType) -> DataSourceReader:
        from postroad.spark.options import parse_read
        from postroad.spark.reader import BatchReader, FilteringReader

        options = parse_read(self.options, streaming=False)
        kind = FilteringReader if _tells_filters() else BatchReader
        return kind(options, _task(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from postroad.spark.options import parse_read
        from postroad.spark.stream_reader import StreamReader

        options = parse_read(self.options, streaming=True)
        return StreamReader(options, _task(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from postroad.spark.sink import BatchWriter
        from postroad.spark.write_options import parse_write

        return BatchWriter(parse_write(self.options, streaming=False), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from postroad.spark.sink import StreamWriter
        from postroad.spark.write_options import parse_write

        return StreamWriter(parse_write(self.options, streaming=True), schema)


def _tells_filters() -> bool:
    """Whether Spark makes this reader to tell it the query's filters.

    It does so from a module of its own, and with `spark.sql.python.filterPushdown.enabled` alone. The setting
    itself doesn't come here, and a reader that takes filters is an error wherever else Spark makes one.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and not frame.f_code.co_filename.endswith(_TELLS_FILTERS):
        frame = frame.f_back
    return frame is not None


def _value_ddl(options: ReadOptions, values: ValueOptions) -> str:
    if values.registry is not None:
        from postroad.spark import registered_source

        return registered_source.ddl(options, values)
    if values.schema is not None:
        return f"struct<{values.schema}>"
    from postroad.spark import json_schema

    return json_schema.infer(options)


def _task(schema: StructType, options: ReadOptions) -> Task:
    from postroad.spark import columns
    from postroad.spark.reader import Task

    fields = {field.name: field.dataType.simpleString() for field in schema.fields}
    if options.values is None:
        return Task(options, columns.projection(list(fields.items()), headers=options.headers))
    if columns.VALUE in fields:
        fields[columns.VALUE] = columns.DDL[columns.VALUE]  # what is decoded; what it becomes is checked next
    names = columns.projection(list(fields.items()), headers=options.headers).names
    values = _parsed_values(schema, options, options.values, names)
    return Task(options, values.wanted, values)


def _parsed_values(
    schema: StructType, read: ReadOptions, options: ValueOptions, names: tuple[str, ...]
) -> ParsedValues:
    from pyspark.sql.pandas.types import to_arrow_schema

    from postroad.errors import ConfigurationError
    from postroad.spark import columns, json_parsing, parsed_values

    if columns.VALUE not in names:
        raise ConfigurationError(
            f"valueFormat={options.format}: the schema has no column value for the fields."
        )
    kind = to_arrow_schema(schema, timezone="UTC").field(columns.VALUE).type
    parser: parsed_values.ValueParser
    if options.registry is not None:
        from postroad.spark import registered_source

        parser = registered_source.parser(read, options, kind)
    else:
        json_parsing.check_kind(kind)
        parser = parsed_values.JsonParser(kind)
    return parsed_values.ParsedValues(
        names, kind, parser, options.bad_rows, options.dead_letter_topic, f"job {uuid.uuid4()}"
    )
