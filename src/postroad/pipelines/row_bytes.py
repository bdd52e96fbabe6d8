"""How large rows are, as a number for people: of each column what its values take, without compression.

Texts and bytes are as long as they are, numbers and times have the width of their type, and what is nested
counts as JSON. Spark has no such number of its own for a source in Python.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

BYTES: Final = "bytes"

_WIDTHS: Final = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
}
_DECIMAL: Final = 16
_NESTED: Final = ("array", "map", "struct")


def observed(rows: DataFrame, name: str) -> DataFrame:
    """The same rows; how many bytes they have is a metric of that name, with the field `BYTES`."""
    from pyspark.sql import functions as sf

    sizes = [_size(field.name, field.dataType) for field in rows.schema.fields]
    return rows.observe(name, sf.sum(reduce(add, sizes, sf.lit(0).cast("bigint"))).alias(BYTES))


def _size(name: str, kind: DataType) -> Column:
    from pyspark.sql import functions as sf

    column = sf.col(f"`{name.replace('`', '``')}`")
    text = kind.simpleString()
    if text in _WIDTHS:
        size = sf.lit(_WIDTHS[text])
    elif text.startswith("decimal"):
        size = sf.lit(_DECIMAL)
    elif text.startswith(_NESTED):
        size = sf.octet_length(sf.to_json(column))
    elif text in ("string", "binary"):
        size = sf.octet_length(column)
    else:
        size = sf.octet_length(column.cast("string"))
    return sf.when(column.isNull(), sf.lit(0)).otherwise(size)
