"""Which documents a writer's JSON Schema allows and a reader's does not.

Nobody can decide that for all schemas; what is not understood (`not`, `if`, `dependencies` …) has to stay as
it is. As in Confluent's registry, a property may not come to an open content model with a type of its own,
since a document may have had anything under its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from postroad.schemas.budget import Budget, TooComplex
from postroad.schemas.json_schema import TYPES, JsonSchema, Schema

# Keywords of which only equality is known to be safe.
_OPAQUE: Final = (
    "not", "if", "then", "else", "contains", "propertyNames", "patternProperties", "dependencies",
    "dependentSchemas", "dependentRequired", "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_AT_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_AT_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
STEPS_MAX: Final = 2_000_000  # alternatives within alternatives are compared all with all
COMPARISON: Final = 100  # steps of one comparison; of a name, or of ten characters of a path, one

Side = tuple[Schema, str]  # a schema, and the document that it is in


def differences(reader: JsonSchema, writer: JsonSchema) -> list[str]:
    """Why documents of the writer may be invalid to the reader; empty: they are all valid."""
    try:
        return list(_Comparison(reader, writer).compare((reader.root, ""), (writer.root, ""), ""))
    except (TooComplex, RecursionError):  # the latter is how a circle of allOf ends
        return [f"/: the schemas are too complex to compare in {STEPS_MAX} steps"]


class _Comparison:
    def __init__(self, reader: JsonSchema, writer: JsonSchema) -> None:
        self._reader = reader
        self._writer = writer
        self._under_way: set[tuple[int, int]] = set()
        self._budget = Budget(STEPS_MAX)
        self._same: dict[tuple[int, int], bool] = {}  # of parts that are compared as they are

    def compare(self, reader: Side, writer: Side, path: str) -> Iterator[str]:
        self._budget.take(COMPARISON + len(path) // 10)
        reader, writer = _followed(self._reader, reader), _followed(self._writer, writer)
        new, old = reader[0], writer[0]
        if new is True or new == {} or old is False:
            return
        if new is False:
            yield f"{path or '/'}: nothing is valid any more"
            return
        pair = id(new), id(old)
        if pair in self._under_way:  # a recursive schema: what is being compared is taken to fit
            return
        self._under_way.add(pair)
        try:
            yield from self._compare(reader, ({} if old is True else old, writer[1]), path)
        finally:
            self._under_way.discard(pair)

    def _compare(self, reader: Side, writer: Side, path: str) -> Iterator[str]:
        new, old = _dict(reader), _dict(writer)
        self._budget.take(sum(len(each) + len(each.get("enum", ())) for each in (new, old)))
        for name in ("anyOf", "oneOf"):
            if name in old:  # whatever alternative the document was written by, the reader takes it
                for number, each in enumerate(old[name]):
                    merged = {**{key: value for key, value in old.items() if key != name}, **_object(each)}
                    side = (merged, writer[1]) if "$ref" not in merged else (each, writer[1])
                    yield from self.compare(reader, side, f"{path}/{name}/{number}")
                return
        if "allOf" in old:
            merged = _merged(self._writer, writer, self._budget)
            yield from self.compare(reader, (merged, writer[1]), path)
            return
        yield from self._alternatives(reader, writer, path)
        yield from self._plain(new, old, path)
        yield from self._objects(reader, writer, path)
        yield from self._arrays(reader, writer, path)

    def _alternatives(self, reader: Side, writer: Side, path: str) -> Iterator[str]:
        new, document = _dict(reader), reader[1]
        for each in new.get("allOf", []):
            yield from self.compare((each, document), writer, f"{path}/allOf")
        for name in ("anyOf", "oneOf"):
            if name in new and not any(self._takes((each, document), writer) for each in new[name]):
                yield f"{path or '/'}: the writer's schema fits none of {name}"

    def _takes(self, reader: Side, writer: Side) -> bool:
        return next(self.compare(reader, writer, ""), None) is None

    def _plain(self, new: dict[str, Any], old: dict[str, Any], path: str) -> Iterator[str]:
        at = path or "/"
        lost = sorted(_types(old) - _types(new) - ({"integer"} if "number" in _types(new) else set()))
        if lost:
            yield f"{at}: the type {', '.join(lost)} is not valid any more"
        known = _values(new)
        if known is not None and not _has_all(known, _values(old), self._budget):
            yield f"{at}: values of the enum were taken away"
        yield from _bounds(new, old, at)
        if new.get("pattern", old.get("pattern")) != old.get("pattern"):
            yield f"{at}: the pattern was added or changed"
        if new.get("uniqueItems") is True and old.get("uniqueItems") is not True:
            yield f"{at}: uniqueItems was added"
        for name in _OPAQUE:
            if name in new and not self._is_same(new[name], old.get(name)):
                yield f"{at}: {name} was added or changed"

    def _is_same(self, ours: Any, theirs: Any) -> bool:
        pair = id(ours), id(theirs)
        if pair not in self._same:
            self._same[pair] = ours == theirs
        return self._same[pair]

    def _objects(self, reader: Side, writer: Side, path: str) -> Iterator[str]:
        new, old = _dict(reader), _dict(writer)
        if "object" not in _types(old) or "object" not in _types(new):
            return
        ours, theirs = new.get("properties", {}), old.get("properties", {})
        needed, given = new.get("required", []), {*old.get("required", [])}
        self._budget.take(len(ours) + len(theirs) + len(needed) + len(given))
        rest, rest_written = new.get("additionalProperties", True), old.get("additionalProperties", True)
        for name, schema in ours.items():
            written = theirs.get(name, rest_written)
            if name not in theirs and written is True and schema not in (True, {}):
                yield f"{path}/properties/{name}: the property was added to an open content model"
                continue
            yield from self.compare((schema, reader[1]), (written, writer[1]), f"{path}/properties/{name}")
        for name, schema in theirs.items():
            if name not in ours:
                if rest is False and schema is not False:
                    yield f"{path}/properties/{name}: the property was removed from a closed content model"
                else:
                    yield from self.compare(
                        (rest, reader[1]), (schema, writer[1]), f"{path}/properties/{name}"
                    )
        if "patternProperties" not in new:
            inner = f"{path}/additionalProperties"
            yield from self.compare((rest, reader[1]), (rest_written, writer[1]), inner)
        for name in needed:
            has_default = isinstance(ours.get(name), dict) and "default" in ours[name]
            if name not in given and not has_default:
                yield f"{path}/required: {name} has become required"

    def _arrays(self, reader: Side, writer: Side, path: str) -> Iterator[str]:
        new, old = _dict(reader), _dict(writer)
        if "array" not in _types(old) or "array" not in _types(new):
            return
        (ours, rest), (theirs, rest_written) = _tuple_of(new), _tuple_of(old)
        for number in range(max(len(ours), len(theirs))):
            item = ours[number] if number < len(ours) else rest
            written = theirs[number] if number < len(theirs) else rest_written
            yield from self.compare((item, reader[1]), (written, writer[1]), f"{path}/items/{number}")
        yield from self.compare((rest, reader[1]), (rest_written, writer[1]), f"{path}/items")


def _bounds(new: dict[str, Any], old: dict[str, Any], at: str) -> Iterator[str]:
    for name in _AT_LEAST:
        says_nothing = name.startswith("min") and name != "minimum" and new.get(name) == 0
        fits = says_nothing or _is_number_pair(new, old, name, lambda ours, theirs: ours <= theirs)
        if name in new and not fits:
            yield f"{at}: {name} was added or raised"
    for name in _AT_MOST:
        if name in new and not _is_number_pair(new, old, name, lambda ours, theirs: ours >= theirs):
            yield f"{at}: {name} was added or lowered"
    if "multipleOf" in new and not _is_number_pair(new, old, "multipleOf", _divides):
        yield f"{at}: multipleOf was added or changed"


def _dict(side: Side) -> dict[str, Any]:
    assert isinstance(side[0], dict)
    return side[0]


def _object(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


def _followed(schema: JsonSchema, side: Side) -> Side:
    """Behind its `$ref`s. A circle of nothing but references says nothing, so everything is valid."""
    found, document = side
    for _ in range(100):
        if not isinstance(found, dict) or "$ref" not in found:
            return found, document
        step = schema.resolve(found["$ref"], document)
        if step is None:
            return True, document
        found, document = step
    return True, document


def _merged(schema: JsonSchema, side: Side, budget: Budget) -> dict[str, Any]:
    """A writer's `allOf` as one schema, which allows no less than all of them do."""
    whole = {key: value for key, value in _dict(side).items() if key != "allOf"}
    properties, required = dict(whole.get("properties", {})), list(whole.get("required", []))
    for each in _dict(side)["allOf"]:
        part = _object(_followed(schema, (each, side[1]))[0])
        budget.take(len(part) + len(part.get("properties", ())) + len(part.get("required", ())))
        properties.update(part.get("properties", {}))
        required += part.get("required", [])
        for key, value in part.items():
            whole.setdefault(key, value)
    if properties:
        whole["properties"] = properties
    if required:
        whole["required"] = required
    return whole


def _types(schema: dict[str, Any]) -> set[str]:
    kinds = schema.get("type")
    if kinds is None:
        values = _values(schema)
        return {*TYPES} if values is None else {_type_of(value) for value in values}
    found = {*kinds} if isinstance(kinds, list) else {kinds}
    return found | {"integer"} if "number" in found else found


def _type_of(value: Any) -> str:
    names = {bool: "boolean", dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return names.get(type(value), "null")


def _values(schema: dict[str, Any]) -> list[Any] | None:
    """All values that are valid, if they are written down."""
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def _has_all(known: list[Any], written: list[Any] | None, budget: Budget) -> bool:
    """Whether all that may have been written is still known; None: it may have been anything."""
    if written is None:
        return False
    budget.take(len(known) + len(written))
    return {*map(_spelled, written)} <= {*map(_spelled, known)}


def _spelled(value: Any) -> bytes:
    """The same for values that are equal in JSON: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return msgspec.json.encode(value, order="sorted")


def _is_number_pair(new: dict[str, Any], old: dict[str, Any], name: str, fits: Any) -> bool:
    """Draft 4 has true for an exclusive bound."""
    ours, theirs = new.get(name), old.get(name)
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours == theirs
    return ours is not None and theirs is not None and bool(fits(ours, theirs))


def _divides(ours: float, theirs: float) -> bool:
    try:
        return ours != 0 and theirs % ours == 0
    except OverflowError:  # a whole number that no float is as large as
        return False


def _tuple_of(schema: dict[str, Any]) -> tuple[list[Any], Schema]:
    """The schemas of the first items, and that of all others."""
    items = schema.get("items", True)
    if "prefixItems" in schema:
        return schema["prefixItems"], items
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return [], items
