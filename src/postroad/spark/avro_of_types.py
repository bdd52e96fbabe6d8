"""The Avro schema of a type of Spark's, where nobody has given one. Everything may be null, as in Spark."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

from postroad.errors import ConfigurationError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final[dict[Any, Any]] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


def record_of(kind: Any, name: str) -> dict[str, Any]:
    """A record for a struct. Raises ConfigurationError."""
    fields = []
    for field in kind:
        if not _NAME.fullmatch(field.name):
            raise ConfigurationError(
                f"A field of Avro can't be called {field.name!r}: rename it, or give valueSchema."
            )
        type_ = _type(field.type, f"{name}_{field.name}")
        fields.append({"name": field.name, "type": ["null", type_], "default": None})
    return {"type": "record", "name": name, "fields": fields}


def _type(kind: Any, name: str) -> Any:
    if pa.types.is_struct(kind):
        return record_of(kind, name)
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise ConfigurationError(f"The keys of an Avro map are strings, not {kind.key_type}.")
        return {"type": "map", "values": ["null", _type(kind.item_type, f"{name}_value")]}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _type(kind.value_type, f"{name}_item")]}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if kind not in _PLAIN:
        raise ConfigurationError(f"There is no Avro type for {kind}: cast it, or give valueSchema.")
    return _PLAIN[kind]
