"""The JSON Schema of a type of Spark's, where nobody has given one.

Objects have no other properties, so that a column may be added later: to an object that allows any
property none of a certain type can come. A field that is null is left out; elements and values may be null.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from postroad.errors import ConfigurationError

_NULL: Final = {"type": "null"}
_PLAIN: Final[dict[Any, Any]] = {
    pa.bool_(): {"type": "boolean"},
    pa.int8(): {"type": "integer"},
    pa.int16(): {"type": "integer"},
    pa.int32(): {"type": "integer"},
    pa.int64(): {"type": "integer"},
    pa.float32(): {"type": "number"},
    pa.float64(): {"type": "number"},
    pa.string(): {"type": "string"},
    pa.date32(): {"type": "string", "format": "date"},
    pa.timestamp("us", tz="UTC"): {"type": "string", "format": "date-time"},
    pa.timestamp("us"): {"type": "string"},
}


def document_of(kind: Any, title: str) -> dict[str, Any]:
    """Raises ConfigurationError."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **_type(kind)}


def _type(kind: Any) -> dict[str, Any]:
    if pa.types.is_struct(kind):
        fields = {field.name: _type(field.type) for field in kind}
        return {"type": "object", "properties": fields, "additionalProperties": False}
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise ConfigurationError(f"The keys of a JSON object are strings, not {kind.key_type}.")
        return {"type": "object", "additionalProperties": {"oneOf": [_NULL, _type(kind.item_type)]}}
    if pa.types.is_list(kind):
        return {"type": "array", "items": {"oneOf": [_NULL, _type(kind.value_type)]}}
    if pa.types.is_decimal(kind):
        return {"type": "number"}
    if kind not in _PLAIN:
        raise ConfigurationError(f"JSON has no type for {kind}: cast it, binaries by base64().")
    found: dict[str, Any] = _PLAIN[kind]
    return found
