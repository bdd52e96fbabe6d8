"""The types of Spark that documents of a JSON Schema are read as.

boolean, integer, number, string           boolean, bigint, double, string
string of format date, or date-time        date, timestamp
array with one schema of items             array
object with properties                     struct
object with additionalProperties alone     map
null and one other, oneOf with null        that type
$ref                                       what it leads to, unless that is around it
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from postroad.errors import ConfigurationError
from postroad.schemas.json_schema import JsonSchema
from postroad.spark.json_writing import Shape

_SCALARS: Final = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
    "null": pa.string(),
}
_FORMATS: Final = {"date": pa.date32(), "date-time": pa.timestamp("us", tz="UTC")}


def arrow_type_of(schema: JsonSchema) -> Any:
    """Raises ConfigurationError for what no column can be."""
    found = _type(schema, schema.root, "", "value", ())
    if not pa.types.is_struct(found):
        raise ConfigurationError(
            "valueFormat=json-schema: the schema must be one of objects with properties."
        )
    return found


def _type(schema: JsonSchema, part: Any, document: str, path: str, within: tuple[int, ...]) -> Any:
    if id(part) in within:
        raise ConfigurationError(f"valueFormat=json-schema: {path} contains itself, which no column can.")
    if not isinstance(part, dict):
        raise _unknown(path)
    inner = (*within, id(part))
    if "$ref" in part:
        found = schema.resolve(part["$ref"], document)
        assert found is not None, "references were checked"
        return _type(schema, found[0], found[1], path, inner)
    for name in ("oneOf", "anyOf"):
        if name in part:
            others = [each for each in part[name] if each != {"type": "null"}]
            if len(others) != 1:
                raise _unknown(path)
            return _type(schema, others[0], document, path, inner)
    if part.get("properties"):
        return pa.struct(
            [
                pa.field(name, _type(schema, each, document, f"{path}.{name}", inner))
                for name, each in part["properties"].items()
            ]
        )
    return _scalar_or_array(schema, part, document, path, inner)


def _scalar_or_array(
    schema: JsonSchema, part: dict[str, Any], document: str, path: str, within: tuple[int, ...]
) -> Any:
    kinds = part.get("type", "string" if "enum" in part or "const" in part else None)
    others = [each for each in (kinds if isinstance(kinds, list) else [kinds]) if each != "null"]
    kind = others[0] if len(others) == 1 else "null" if kinds == "null" else None
    if {*others} == {"integer", "number"}:
        kind = "number"
    if kind == "array" and isinstance(part.get("items"), dict):
        return pa.list_(pa.field("element", _type(schema, part["items"], document, f"{path}[]", within)))
    if kind == "object" and isinstance(part.get("additionalProperties"), dict):
        inner = _type(schema, part["additionalProperties"], document, f"{path}.*", within)
        return pa.map_(pa.string(), inner)
    if kind == "string" and part.get("format") in _FORMATS:
        return _FORMATS[part["format"]]
    if kind not in _SCALARS:
        raise _unknown(path)
    return _SCALARS[kind]


def _unknown(path: str) -> ConfigurationError:
    return ConfigurationError(
        f"valueFormat=json-schema: the schema does not say of which one type {path} is. Say it: "
        "valueSchema = 'id bigint, name string'."
    )


def shape_of(schema: JsonSchema) -> Shape:
    """What the schema says of nulls. It has a type (`arrow_type_of`), so no part contains itself."""
    return _shape(schema, schema.root, "", is_required=False)


def _shape(schema: JsonSchema, part: Any, document: str, *, is_required: bool) -> Shape:
    assert isinstance(part, dict), "it has a type"
    if "$ref" in part:
        found = schema.resolve(part["$ref"], document)
        assert found is not None, "references were checked"
        return _shape(schema, *found, is_required=is_required)
    for name in ("oneOf", "anyOf"):
        if name in part:
            others = [each for each in part[name] if each != {"type": "null"}]
            inner = _shape(schema, others[0], document, is_required=is_required)
            return inner._replace(takes_null=inner.takes_null or len(others) < len(part[name]))
    given = part.get("required")
    required: list[Any] = given if isinstance(given, list) else []  # draft 3 has a boolean in each property
    fields = {
        name: _shape(schema, each, document, is_required=name in required)
        for name, each in part.get("properties", {}).items()
    }
    inner_part = part.get("items", part.get("additionalProperties"))
    items = _shape(schema, inner_part, document, is_required=False) if _is_typed(part, inner_part) else None
    return Shape(_takes_null(part), is_required, fields, items)


def _is_typed(part: dict[str, Any], inner: Any) -> bool:
    """Whether the type has what is within an array or a map."""
    return isinstance(inner, dict) and not part.get("properties")


def _takes_null(part: dict[str, Any]) -> bool:
    kinds = part.get("type")
    if kinds is None:
        return None in part["enum"] if "enum" in part else part.get("const") is None
    return "null" in kinds if isinstance(kinds, list) else bool(kinds == "null")
