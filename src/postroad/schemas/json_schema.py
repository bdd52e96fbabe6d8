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
_EXCLUSIVE: Final = ("exclusiveMinimum", "exclusiveMaximum")
_NUMBERS: Final = ("minimum", "maximum", "multipleOf")

_INDEX: Final = re.compile(r"[0-9]{1,9}")
_PERCENT: Final = re.compile(r"%([0-7][0-9a-fA-F])")

Schema = bool | dict[str, Any]


class JsonSchema:
    """`root` as it was written; `documents` has the referenced ones by their names, and the root as ""."""

    def __init__(self, root: Schema, documents: Mapping[str, Schema]) -> None:
        self.root = root
        self.documents = {**documents, "": root}
        own = root.get("$id", root.get("id", "")) if isinstance(root, dict) else ""
        self.base = own if isinstance(own, str) else ""
        self._resolved: dict[tuple[str, str], tuple[Schema, str] | None] = {}
        self._anchors: dict[str, dict[str, Schema]] = {}

    def resolve(self, reference: str, document: str = "") -> tuple[Schema, str] | None:
        """What a `$ref` in a document stands for, and in which document that is; None: there is none."""
        key = reference, document
        if key not in self._resolved:
            self._resolved[key] = self._resolve(reference, document)
        return self._resolved[key]

    def _resolve(self, reference: str, document: str) -> tuple[Schema, str] | None:
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
            if isinstance(found, list) and _INDEX.fullmatch(key) and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                return None
        if pointer and not pointer.startswith("/"):
            if found_in not in self._anchors:
                self._anchors[found_in] = dict(_anchors(self.documents[found_in]))
            found = self._anchors[found_in].get(pointer)
        return (found, found_in) if isinstance(found, (bool, dict)) else None


def parse(text: str, references: Mapping[str, str] | None = None) -> JsonSchema:
    """`references`: texts by the names under which this one refers to them. Raises InvalidSchema."""
    documents = {name: _decoded(each) for name, each in (references or {}).items()}
    schema = JsonSchema(_decoded(text), documents)
    checker = _Checker()
    waiting: list[tuple[Schema, str]] = [(document, name) for name, document in schema.documents.items()]
    while waiting:  # a reference may lead to where no keyword does
        part, document = waiting.pop()
        checker.check(part, ("#",))
        for reference in checker.take_references():
            found = schema.resolve(reference, document)
            if found is None:
                raise InvalidSchema(f"$ref {reference!r} leads nowhere.")
            waiting.append(found)
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


class _Checker:
    """Looks at each schema once, and remembers where those that it has seen refer to."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._references: list[str] = []

    def check(self, schema: Any, path: tuple[str, ...]) -> None:
        """Raises InvalidSchema where a keyword has a value that no draft allows it."""
        if len(path) > DEPTH_MAX:
            raise InvalidSchema(f"The JSON schema nests deeper than {DEPTH_MAX} levels.")
        if isinstance(schema, bool) or id(schema) in self._seen:
            return
        if not isinstance(schema, dict):
            raise InvalidSchema(f"{'/'.join(path)}: a schema is an object, true or false.")
        self._seen.add(id(schema))
        try:
            _check_keywords(schema)
        except InvalidSchema as error:
            raise InvalidSchema(f"{'/'.join(path)}/{error}") from None
        if "$ref" in schema:
            self._references.append(schema["$ref"])
        for name, part in parts(schema):
            self.check(part, (*path, name))

    def take_references(self) -> list[str]:
        found, self._references = self._references, []
        return found


def _check_keywords(schema: dict[str, Any]) -> None:
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in TYPES:
            raise InvalidSchema(f"type: {kind!r} is none of {', '.join(sorted(TYPES))}.")
    _check_numbers(schema)
    for names, type_, right in (
        (("required", "enum", *_MANY), list, "an array"),
        (_NAMED, dict, "an object"),
        (("pattern", "$ref"), str, "a string"),
    ):
        for name in names:
            if name in schema and not isinstance(schema[name], type_):
                raise InvalidSchema(f"{name} must be {right}.")
    if not all(isinstance(each, str) for each in schema.get("required", [])):
        raise InvalidSchema("required must have names.")


def _check_numbers(schema: dict[str, Any]) -> None:
    for name in (*_COUNTS, *_NUMBERS):
        number = schema.get(name, 1)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise InvalidSchema(f"{name} must be a number.")
        if name in _COUNTS and (number < 0 or number != int(number)):
            raise InvalidSchema(f"{name} must be a whole number of 0 or more.")
    for name in _EXCLUSIVE:
        if not isinstance(schema.get(name, 1), (bool, int, float)):
            raise InvalidSchema(f"{name} must be a number, or true or false.")


def _anchors(schema: Any) -> Iterator[tuple[str, Schema]]:
    """The last ones first: a name that is there twice is the first one's."""
    if isinstance(schema, dict):
        for _, part in reversed([*parts(schema)]):
            yield from _anchors(part)
        for name in ("id", "$id"):
            if isinstance(schema.get(name), str) and schema[name].startswith("#"):
                yield schema[name][1:], schema
        if isinstance(schema.get("$anchor"), str):
            yield schema["$anchor"], schema
