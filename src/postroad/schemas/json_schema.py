"""JSON Schemas: parsed, checked and written in a canonical form; drafts 4 to 2020-12 by what they share.

A schema is looked at as far as it says which documents are valid (`json_compatibility.py`), and where its
references lead. Keywords that are not known are part of the canonical form and of nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from postroad.errors import InvalidSchema

DEPTH_MAX: Final = 64
TYPES: Final = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})

_ONE: Final = (
    "additionalProperties",
    "additionalItems",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
)
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS: Final = ("minimum", "maximum", "multipleOf")

_PERCENT: Final = re.compile(r"%([0-7][0-9a-fA-F])")

Schema = bool | dict[str, Any]


class JsonSchema:
    """`root` as it was written; `documents` has the referenced ones by their names, and the root as ""."""

    def __init__(self, root: Schema, documents: Mapping[str, Schema]) -> None:
        self.root = root
        self.documents = {**documents, "": root}
        own = root.get("$id", root.get("id", "")) if isinstance(root, dict) else ""
        self.base = own if isinstance(own, str) else ""

    def resolve(self, reference: str, document: str = "") -> tuple[Schema, str] | None:
        """What a `$ref` in a document stands for, and in which document that is; None: there is none."""
        name, _, pointer = reference.partition("#")
        if not name:
            found_in = document
        else:
            candidates = (name, self.base.rpartition("/")[0] + "/" + name, name.rpartition("/")[2])
            known = [each for each in candidates if each in self.documents]
            if not known and name.rstrip("#") != self.base:
                return None
            found_in = known[0] if known else ""
        found: Any = self.documents[found_in]
        for part in pointer.split("/")[1:]:
            key = _PERCENT.sub(lambda found: chr(int(found[1], 16)), part)
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                return None
        if pointer and not pointer.startswith("/"):
            found = _by_anchor(self.documents[found_in], pointer)
        return (found, found_in) if isinstance(found, (bool, dict)) else None


def parse(text: str, references: Mapping[str, str] | None = None) -> JsonSchema:
    """`references`: texts by the names under which this one refers to them. Raises InvalidSchema."""
    documents = {name: _decoded(each) for name, each in (references or {}).items()}
    schema = JsonSchema(_decoded(text), documents)
    for document in schema.documents.values():
        _check(document, "#", 0)
    for name, document in schema.documents.items():
        for reference in _references(document):
            if schema.resolve(reference, name) is None:
                raise InvalidSchema(f"$ref {reference!r} leads nowhere.")
    return schema


def canonical(schema: JsonSchema) -> str:
    """The same for texts that differ in white space or in the order of members."""
    return msgspec.json.encode(schema.root, order="sorted").decode()


def _decoded(text: str) -> Schema:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidSchema(f"The JSON schema is no JSON: {error}") from None
    if not isinstance(found, (bool, dict)):
        raise InvalidSchema("A JSON schema is an object, true or false.")
    return found


def parts(schema: Schema) -> Iterator[tuple[str, Any]]:
    """The schemas directly within one, each with where it is."""
    if isinstance(schema, bool):
        return
    for name in _ONE:
        if name in schema:
            yield name, schema[name]
    items = schema.get("items")
    for number, each in enumerate(items if isinstance(items, list) else [] if items is None else [items]):
        yield f"items/{number}", each
    for name in _MANY:
        for number, each in enumerate(schema.get(name, [])):
            yield f"{name}/{number}", each
    for name in _NAMED:
        for key, each in schema.get(name, {}).items():
            yield f"{name}/{key}", each


def _check(schema: Any, path: str, depth: int) -> None:
    """Raises InvalidSchema where a keyword has a value that no draft allows it."""
    if depth > DEPTH_MAX:
        raise InvalidSchema(f"The JSON schema nests deeper than {DEPTH_MAX} levels.")
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise InvalidSchema(f"{path}: a schema is an object, true or false.")
    _check_keywords(schema, path)
    for name, part in parts(schema):
        _check(part, f"{path}/{name}", depth + 1)


def _check_keywords(schema: dict[str, Any], path: str) -> None:
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in TYPES:
            raise InvalidSchema(f"{path}/type: {kind!r} is none of {', '.join(sorted(TYPES))}.")
    _check_numbers(schema, path)
    for names, type_, right in (
        (("required", "enum", *_MANY), list, "an array"),
        (_NAMED, dict, "an object"),
        (("pattern", "$ref"), str, "a string"),
    ):
        for name in names:
            if name in schema and not isinstance(schema[name], type_):
                raise InvalidSchema(f"{path}/{name} must be {right}.")
    if not all(isinstance(each, str) for each in schema.get("required", [])):
        raise InvalidSchema(f"{path}/required must have names.")


def _check_numbers(schema: dict[str, Any], path: str) -> None:
    for name in (*_COUNTS, *_NUMBERS):
        number = schema.get(name, 1)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise InvalidSchema(f"{path}/{name} must be a number.")
        if name in _COUNTS and (number < 0 or number != int(number)):
            raise InvalidSchema(f"{path}/{name} must be a whole number of 0 or more.")


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for _, part in parts(schema):
            yield from _references(part)


def _by_anchor(schema: Any, name: str) -> Any:
    if isinstance(schema, dict):
        if schema.get("$anchor") == name or schema.get("$id") == f"#{name}" or schema.get("id") == f"#{name}":
            return schema
        for _, part in parts(schema):
            found = _by_anchor(part, name)
            if found is not None:
                return found
    return None
