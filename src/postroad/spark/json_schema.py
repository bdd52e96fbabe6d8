"""The fields of JSON values, found by looking at the newest of them.

Types are those that JSON has: boolean, bigint, double, string, arrays and structs. Whole numbers and
fractions together are double; a field that is null everywhere is taken for a string. Fields of two different
types can't be read by one schema, so that is an error that asks for `valueSchema`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from postroad.errors import ConfigurationError
from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.columns import Columns
from postroad.spark.options import ReadOptions
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import read_range

SAMPLE_ROWS: Final = 1000
_LONG_MAX: Final = 1 << 63

Kind = str | list["Kind"] | dict[str, "Kind"] | None
"""A scalar's name, a list of the one kind of its elements, a struct's fields, or None: not known yet."""


def infer(options: ReadOptions) -> str:
    """The values' type in Spark's words. ConfigurationError if there is nothing to learn it from."""
    with options.cluster as cluster:
        kind = of_values(_sample(cluster, options))
    if not kind:
        raise ConfigurationError(
            "valueFormat=json: there is no JSON object in the topic to learn the fields from. "
            "Say what they are: valueSchema = 'id bigint, name string'."
        )
    return ddl(kind)


def of_values(values: Iterable[bytes | None]) -> Kind:
    """The kind of all that are JSON objects; others are passed over here, and bad rows later."""
    found: Kind = None
    for value in values:
        if value is None:
            continue
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(decoded, dict):
            found = _merge(found, _kind(decoded), "")
    return found


def ddl(kind: Kind) -> str:
    """In Spark's words; names in back quotes, since they may be anything."""
    if isinstance(kind, list):
        return f"array<{ddl(kind[0])}>"
    if isinstance(kind, dict):
        fields = (f"`{name.replace('`', '``')}`: {ddl(inner)}" for name, inner in kind.items() if inner != {})
        return f"struct<{', '.join(fields)}>"
    return kind or "string"


def _kind(value: Any) -> Kind:
    if isinstance(value, dict):
        return {name: _kind(inner) for name, inner in value.items()}
    if isinstance(value, list):
        inner: Kind = None
        for each in value:
            inner = _merge(inner, _kind(each), "[]")
        return [inner]
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint" if -_LONG_MAX <= value < _LONG_MAX else "double"
    if isinstance(value, float):
        return "double"
    return None if value is None else "string"


def _merge(one: Kind, other: Kind, path: str) -> Kind:
    if one is None or other is None or one == other:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        names = dict.fromkeys((*one, *other))
        return {name: _merge(one.get(name), other.get(name), f"{path}.{name}") for name in names}
    if isinstance(one, list) and isinstance(other, list):
        return [_merge(one[0], other[0], f"{path}[]")]
    if {str(one), str(other)} == {"bigint", "double"}:
        return "double"
    raise ConfigurationError(
        f"valueFormat=json: field {path.removeprefix('.')} is {ddl(one)} in some values and {ddl(other)} in "
        "others. Say which it should be: valueSchema = 'id bigint, name string'."
    )


def _sample(cluster: Cluster, options: ReadOptions) -> Iterator[bytes | None]:
    """The newest values of each partition."""
    topic_partitions = options.subscription.topic_partitions(cluster)
    earliest, latest = cluster.earliest(topic_partitions), cluster.latest(topic_partitions)
    share = max(1, SAMPLE_ROWS // max(1, len(topic_partitions)))
    for topic_partition in topic_partitions:
        part = OffsetRange(
            *topic_partition,
            max(earliest[topic_partition], latest[topic_partition] - share),
            latest[topic_partition],
        )
        for batch in read_range(cluster, part, Columns((columns.VALUE,)), fail_on_data_loss=False):
            yield from batch.column(columns.VALUE).to_pylist()
