"""On the driver: as which schema the values of a topic are read, and what type that is in Spark."""

from __future__ import annotations

from typing import Any

from postroad.errors import ConfigurationError, InvalidSchema
from postroad.schemas.schema import JSON
from postroad.spark.options import ReadOptions, ValueOptions
from postroad.spark.registered_parsing import FORMATS, RegisteredParser, check_format, kind_of
from postroad.spark.schema_registry import NotRegistered, RegisteredText


def ddl(options: ReadOptions, values: ValueOptions) -> str:
    """The values' type in Spark's words."""
    from pyspark.sql.pandas.types import from_arrow_type

    if values.schema is not None and FORMATS[values.format] == JSON:
        return f"struct<{values.schema}>"
    kind = kind_of(wanted(options, values), values.message)
    return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()


def parser(options: ReadOptions, values: ValueOptions, kind: Any) -> RegisteredParser:
    """Raises ConfigurationError."""
    assert values.registry is not None
    if values.schema is not None and FORMATS[values.format] == JSON:  # the query's type says it all
        return RegisteredParser(values.registry, RegisteredText(0, JSON, "{}", ()), kind)
    found = RegisteredParser(values.registry, wanted(options, values), kind, values.message)
    found.check()
    return found


def wanted(options: ReadOptions, values: ValueOptions) -> RegisteredText:
    """The schema that the user gives, or the newest of the topics' subjects. Raises ConfigurationError."""
    assert values.registry is not None
    try:
        if values.schema is not None:
            found = RegisteredText(0, FORMATS[values.format], values.schema, ())
            found.parsed()
            return found
        newest = [values.registry.latest(subject) for subject in _subjects(options, values)]
        for each in newest:
            check_format(each, values.format)
            each.parsed()
    except (NotRegistered, InvalidSchema) as error:
        raise ConfigurationError(f"valueFormat={values.format}: {error}") from None
    if len({each.id for each in newest}) != 1:
        raise ConfigurationError(
            f"valueFormat={values.format}: the topics have different schemas. Say as which one their values "
            "are to be read: valueSchema, or schemaSubject."
        )
    return newest[0]


def _subjects(options: ReadOptions, values: ValueOptions) -> list[str]:
    if values.subject is not None:
        return [values.subject]
    with options.cluster as cluster:
        topics = sorted({topic for topic, _ in options.subscription.topic_partitions(cluster)})
    if not topics:
        raise ConfigurationError("There is no topic yet to learn the schema of: set schemaSubject.")
    return [f"{topic}-value" for topic in topics]
