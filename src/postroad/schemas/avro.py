"""Avro schemas: parsed and checked as Avro 1.12 says, and written in a canonical form.

A parsed schema is a tree of the classes below. A named type that was defined before is the same object, so a
recursive schema is a tree with a way back; whoever walks it goes by `full_name`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad.errors import InvalidSchema
from postroad.schemas.budget import Budget, TooComplex

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
DEPTH_MAX: Final = 64  # types within types: whoever walks a schema recurses
FIELDS_MAX: Final = 10_000
NAME_MAX: Final = 1_000  # characters of a name with its namespace: it is part of every path
DEFAULT_STEPS_MAX: Final = 100_000  # a default of a union is tried with each of its types

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN: Final = frozenset(
    {"type", "name", "namespace", "fields", "symbols", "items", "values", "size", "aliases", "doc", "default"}
)
_OF_FIELDS: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})

NO_DEFAULT: Final = object()


class AvroType:
    """`kind` is Avro's word for it; `extra` has the attributes that Avro gives no meaning, logical types
    too."""

    def __init__(self, kind: str, extra: Mapping[str, Any] | None = None) -> None:
        self.kind = kind
        self.extra = dict(extra or {})

    @property
    def logical(self) -> str:
        """The logical type; "" if there is none that is spelled as one."""
        found = self.extra.get("logicalType", "")
        return found if isinstance(found, str) else ""


class ArrayType(AvroType):
    def __init__(self, items: AvroType, extra: Mapping[str, Any]) -> None:
        super().__init__("array", extra)
        self.items = items


class MapType(AvroType):
    def __init__(self, values: AvroType, extra: Mapping[str, Any]) -> None:
        super().__init__("map", extra)
        self.values = values


class UnionType(AvroType):
    def __init__(self, branches: Sequence[AvroType]) -> None:
        super().__init__("union")
        self.branches = list(branches)


class NamedType(AvroType):
    def __init__(self, kind: str, full_name: str, aliases: Sequence[str], extra: Mapping[str, Any]) -> None:
        super().__init__(kind, extra)
        self.full_name = full_name
        self.aliases = list(aliases)
        self.doc = ""

    @property
    def name(self) -> str:
        return self.full_name.rpartition(".")[2]

    @property
    def namespace(self) -> str:
        return self.full_name.rpartition(".")[0]


class FixedType(NamedType):
    size = 0


class EnumType(NamedType):
    symbols: list[str]
    default: str | None = None


class RecordType(NamedType):
    fields: list[RecordField]


class RecordField:
    def __init__(self, name: str, type_: AvroType, default: Any, aliases: Sequence[str]) -> None:
        self.name = name
        self.type = type_
        self.default = default  # NO_DEFAULT, or as JSON has it
        self.aliases = list(aliases)
        self.doc = ""
        self.order = ""
        self.extra: dict[str, Any] = {}

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT


def parse(text: str, references: Mapping[str, str] | Sequence[str] = ()) -> AvroType:
    """`references`: texts of the schemas whose types this one may name, in an order in which each comes after
    those that it needs. Raises InvalidSchema."""
    reader = _Reader()
    texts = references.values() if isinstance(references, Mapping) else references
    for referenced in texts:
        reader.read(_json(referenced), "", "", 0)
    return reader.read(_json(text), "", "", 0)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        if _NAME.fullmatch(text.strip()):
            return text.strip()  # "string" is a schema, and so is what somebody wrote without its quotes
        raise InvalidSchema(f"The Avro schema is no JSON: {error}") from None


class _Reader:
    """Reads one schema, and knows the types that were named so far."""

    def __init__(self) -> None:
        self.named: dict[str, NamedType] = {}
        self.fields = 0
        self._defaults = Budget(DEFAULT_STEPS_MAX)

    def read(self, given: Any, namespace: str, where: str, depth: int) -> AvroType:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"{where or 'The schema'} nests deeper than {DEPTH_MAX} levels.")
        if isinstance(given, str):
            return self._by_name(given, namespace, where)
        if isinstance(given, list):
            return self._union(given, namespace, where, depth)
        if not isinstance(given, dict):
            raise InvalidSchema(f"{where or 'The schema'}: a schema is a name, an object or an array.")
        kind = given.get("type")
        if isinstance(kind, (dict, list)):  # {"type": {"type": "string"}}
            return self.read(kind, namespace, where, depth + 1)
        if not isinstance(kind, str):
            raise InvalidSchema(f"{where or 'The schema'} has no type.")
        extra = {name: value for name, value in given.items() if name not in _OWN}
        if kind in PRIMITIVES:
            return _checked_logical(AvroType(kind, extra))
        if kind == "array":
            return ArrayType(self._part(given, "items", namespace, where, depth), extra)
        if kind == "map":
            return MapType(self._part(given, "values", namespace, where, depth), extra)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(kind, given, extra, namespace, where, depth)
        return self._by_name(kind, namespace, where)

    def _part(self, given: dict[str, Any], name: str, namespace: str, where: str, depth: int) -> AvroType:
        if name not in given:
            raise InvalidSchema(f"{where or 'The schema'}: {given['type']} without {name!r}.")
        return self.read(given[name], namespace, f"{where}.{name}".lstrip("."), depth + 1)

    def _by_name(self, name: str, namespace: str, where: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        found = self.named.get(_full_name(name, namespace)) or self.named.get(name)
        if found is None:
            raise InvalidSchema(f"{where or 'The schema'}: there is no type {name!r}.")
        return found

    def _union(self, given: list[Any], namespace: str, where: str, depth: int) -> UnionType:
        branches = [self.read(each, namespace, where, depth + 1) for each in given]
        names = [branch_name(each) for each in branches]
        if "union" in names:
            raise InvalidSchema(f"{where or 'The schema'}: a union directly within a union.")
        if len({*names}) != len(names):
            raise InvalidSchema(f"{where or 'The schema'}: a union has one type twice: {', '.join(names)}.")
        return UnionType(branches)

    def _definition(
        self, kind: str, given: dict[str, Any], extra: dict[str, Any], namespace: str, where: str, depth: int
    ) -> NamedType:
        name = given.get("name")
        if not isinstance(name, str):
            raise InvalidSchema(f"{where or 'The schema'}: {kind} without a name.")
        space = given.get("namespace", namespace)
        full = _full_name(name, space if isinstance(space, str) else "")
        _check_full_name(full)
        if full in self.named or full in PRIMITIVES:
            raise InvalidSchema(f"The type {full} is defined twice.")
        aliases = [_full_name(each, full.rpartition(".")[0]) for each in _texts(given, "aliases", full)]
        made = {"enum": EnumType, "fixed": FixedType}.get(kind, RecordType)(
            "record" if kind == "error" else kind, full, aliases, extra
        )
        made.doc = given["doc"] if isinstance(given.get("doc"), str) else ""
        self.named[full] = made
        if isinstance(made, RecordType):
            self._fields(made, given, depth)
        elif isinstance(made, EnumType):
            _symbols(made, given)
        elif isinstance(made, FixedType):
            size = given.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
                raise InvalidSchema(f"{full}: a fixed type needs a size.")
            made.size = size
        _checked_logical(made)
        return made

    def _fields(self, record: RecordType, given: dict[str, Any], depth: int) -> None:
        fields = given.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"{record.full_name}: a record needs an array of fields.")
        record.fields = []
        names: set[str] = set()
        for each in fields:
            self.fields += 1
            if self.fields > FIELDS_MAX:
                raise InvalidSchema(f"A schema has {FIELDS_MAX} fields at most.")
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or "type" not in each:
                raise InvalidSchema(f"{record.full_name}: a field is an object with name and type.")
            _check_length(each["name"])
            name, where = each["name"], f"{record.full_name}.{each['name']}"
            if not _NAME.fullmatch(name):
                raise InvalidSchema(f"{where}: a name is of a-z A-Z 0-9 _ and begins with no digit.")
            if name in names:
                raise InvalidSchema(f"{where}: the field is there twice.")
            names.add(name)
            type_ = self.read(each["type"], record.namespace, where, depth + 1)
            default = each.get("default", NO_DEFAULT)
            if default is not NO_DEFAULT:
                self._check_default(default, type_, where)
            field = RecordField(name, type_, default, _texts(each, "aliases", where))
            field.doc = each["doc"] if isinstance(each.get("doc"), str) else ""
            field.order = each["order"] if isinstance(each.get("order"), str) else ""
            field.extra = {key: value for key, value in each.items() if key not in _OF_FIELDS}
            record.fields.append(field)

    def _check_default(self, default: Any, type_: AvroType, where: str) -> None:
        try:
            if not fits(default, type_, self._defaults):
                raise InvalidSchema(f"{where}: the default does not fit the field's type.")
        except TooComplex:
            raise InvalidSchema(f"{where}: the defaults are too complex to be checked.") from None


def _symbols(enum: EnumType, given: dict[str, Any]) -> None:
    symbols = _texts(given, "symbols", enum.full_name)
    if "symbols" not in given or len({*symbols}) != len(symbols):
        raise InvalidSchema(f"{enum.full_name}: an enum needs symbols, each of them once.")
    if not all(_NAME.fullmatch(symbol) for symbol in symbols):
        raise InvalidSchema(f"{enum.full_name}: a symbol is of a-z A-Z 0-9 _ and begins with no digit.")
    enum.symbols = symbols
    default = given.get("default")
    if default is not None and default not in symbols:
        raise InvalidSchema(f"{enum.full_name}: the default is none of the symbols.")
    enum.default = default


def _texts(given: dict[str, Any], name: str, where: str) -> list[str]:
    found = given.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidSchema(f"{where}: {name} must be an array of strings.")
    return found


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _check_full_name(full: str) -> None:
    _check_length(full)
    if not all(_NAME.fullmatch(part) for part in full.removeprefix(".").split(".")):
        raise InvalidSchema(f"{full!r} is no name of a type.")


def _check_length(name: str) -> None:
    if len(name) > NAME_MAX:
        raise InvalidSchema(f"The name {name[:50]}… is longer than {NAME_MAX} characters.")


def _checked_logical(type_: AvroType) -> AvroType:
    """A decimal's precision can't be passed over, as other logical types that don't fit can."""
    if type_.logical == "decimal" and type_.kind in ("bytes", "fixed"):
        precision, scale = type_.extra.get("precision"), type_.extra.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision > 0:
            raise InvalidSchema("A decimal needs a precision above 0 and a scale from 0 to the precision.")
    return type_


def branch_name(type_: AvroType) -> str:
    """By which a union knows its branches apart."""
    return type_.full_name if isinstance(type_, NamedType) else type_.kind


_FITS: Final[Mapping[str, Any]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _is_int(value) and -(1 << 31) <= value < 1 << 31,
    "long": lambda value: _is_int(value) and -(1 << 63) <= value < 1 << 63,
    "float": lambda value: (
        _is_int(value) or isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity")
    ),
    "double": lambda value: (
        _is_int(value) or isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity")
    ),
    "bytes": lambda value: isinstance(value, str),
    "string": lambda value: isinstance(value, str),
}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def fits(value: Any, type_: AvroType, budget: Budget | None = None) -> bool:
    """Whether JSON is a default of the type. For a union any branch will do, as Avro has it since 1.12.
    Raises TooComplex when the budget is spent."""
    return _fits(value, type_, budget or Budget(DEFAULT_STEPS_MAX))


def _fits(value: Any, type_: AvroType, budget: Budget) -> bool:
    budget.take()
    if isinstance(type_, UnionType):
        return any(_fits(value, branch, budget) for branch in type_.branches)
    if isinstance(type_, ArrayType):
        return isinstance(value, list) and all(_fits(each, type_.items, budget) for each in value)
    if isinstance(type_, MapType):
        return isinstance(value, dict) and all(_fits(each, type_.values, budget) for each in value.values())
    if isinstance(type_, EnumType):
        return isinstance(value, str)
    if isinstance(type_, FixedType):
        return isinstance(value, str) and len(value) == type_.size
    if isinstance(type_, RecordType):
        return isinstance(value, dict) and all(
            _fits(value[field.name], field.type, budget) if field.name in value else field.has_default
            for field in type_.fields
        )
    return bool(_FITS[type_.kind](value))


# --- the canonical form


def canonical(type_: AvroType) -> str:
    """The same for two texts that differ in white space, in the order of attributes, or in how they write a
    name; docs, defaults, aliases and logical types are part of it."""
    return msgspec.json.encode(_plain(type_, "", set())).decode()


def _plain(type_: AvroType, namespace: str, seen: set[str]) -> Any:
    if isinstance(type_, UnionType):
        return [_plain(each, namespace, seen) for each in type_.branches]
    if isinstance(type_, NamedType):
        if type_.full_name in seen:
            return type_.full_name
        seen.add(type_.full_name)
    found: dict[str, Any] = {"type": type_.kind}
    if isinstance(type_, NamedType):
        named = {"name": type_.full_name, "doc": type_.doc, "aliases": type_.aliases}
        found.update({name: value for name, value in named.items() if value})
    if isinstance(type_, RecordType):
        found["fields"] = [_plain_field(each, type_.namespace, seen) for each in type_.fields]
    elif isinstance(type_, EnumType):
        found["symbols"] = type_.symbols
        found.update({} if type_.default is None else {"default": type_.default})
    elif isinstance(type_, FixedType):
        found["size"] = type_.size
    elif isinstance(type_, ArrayType):
        found["items"] = _plain(type_.items, namespace, seen)
    elif isinstance(type_, MapType):
        found["values"] = _plain(type_.values, namespace, seen)
    found.update(sorted(type_.extra.items()))
    return type_.kind if found == {"type": type_.kind} else found


def _plain_field(field: RecordField, namespace: str, seen: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "type": _plain(field.type, namespace, seen)}
    if field.doc:
        found["doc"] = field.doc
    if field.has_default:
        found["default"] = field.default
    if field.order and field.order != "ascending":
        found["order"] = field.order
    if field.aliases:
        found["aliases"] = field.aliases
    found.update(sorted(field.extra.items()))
    return found
