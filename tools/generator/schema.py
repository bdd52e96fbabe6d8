"""One description for each API, over all its versions, read from kio's dataclasses.

kio has one module for each API, version and direction. Here the versions are laid over each other: a
struct holds the union of its fields, each with the versions that have it, in an order that agrees
with the order of every version. What kio dresses up (UUID, timedelta, datetime, enum of error codes)
becomes the plain type that is on the wire.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import classify_field, is_optional

NEVER_FLEXIBLE = 32_767
DATA_SCHEMAS = ("consumer_protocol_subscription", "consumer_protocol_assignment")

# Highest version of Kafka 4.4, by API key; kio may know drafts beyond it.
MAX_VERSIONS = {
    0: 13, 1: 18, 2: 11, 3: 13, 8: 10, 9: 10, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 6, 16: 5, 17: 1,
    18: 5, 19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 5, 27: 2, 28: 6, 29: 3, 30: 3, 31: 3, 32: 4,
    33: 2, 35: 5, 36: 2, 37: 3, 42: 3, 43: 2, 44: 1, 45: 1, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 60: 2,
    61: 0, 65: 0, 66: 1, 68: 1, 69: 1, 75: 0, 76: 1, 77: 1, 78: 2, 79: 2, 90: 1, 91: 0, 92: 0,
}  # fmt: skip

_PLAIN_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
_NO_TIME = -1  # on the wire, where kio has a datetime of None

Versions = frozenset[int]


@dataclass(frozen=True)
class Field:
    """A field over all versions of its struct; `nullable` are the versions in which it may be null."""

    name: str
    type: str
    is_array: bool
    struct: Struct | None
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object

    @property
    def is_tagged(self) -> bool:
        return self.tag is not None

    @property
    def is_optional(self) -> bool:
        """Whether the attribute may be None: null on the wire, or a tagged struct that was left out."""
        return bool(self.nullable) or (self.is_tagged and self.struct is not None and not self.is_array)


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple[Field, ...]
    versions: Versions

    @property
    def tagged(self) -> list[Field]:
        return sorted((field for field in self.fields if field.is_tagged), key=lambda field: field.tag or 0)

    def nested(self) -> Iterator[Struct]:
        """The structs below this one, leaves first; one that is used twice comes twice."""
        for field in self.fields:
            if field.struct is not None:
                yield from field.struct.nested()
                yield field.struct


@dataclass(frozen=True)
class Api:
    """`messages` maps request and response (or data) to their structs."""

    module: str
    key: int | None
    versions: range
    flexible_from: int
    messages: dict[str, Struct]

    @cached_property
    def name(self) -> str:
        return next(iter(self.messages.values())).name.removesuffix("Request")


def load_all() -> list[Api]:
    return [load(key) for key in MAX_VERSIONS] + [load_data(name) for name in DATA_SCHEMAS]


def load(key: int) -> Api:
    name = api_key_map[key]
    versions = sorted(version for version in schema_name_map[name] if version <= MAX_VERSIONS[key])
    return _load(name, key, versions, ("request", "response"))


def load_data(name: str) -> Api:
    """Data that travels inside a bytes field of another API."""
    return _load(name, None, sorted(schema_name_map[name]), ("data",))


def _load(name: str, key: int | None, versions: list[int], directions: tuple[str, ...]) -> Api:
    span = range(versions[0], versions[-1] + 1)
    if list(span) != versions:
        raise ValueError(f"{name}: kio's versions have a gap: {versions}")
    sides = {direction: _Side(name, direction, versions) for direction in directions}
    if len({side.flexible_from for side in sides.values()}) > 1:
        raise ValueError(f"{name}: request and response become flexible at different versions")
    shared = set.intersection(*(set(side.classes) for side in sides.values())) if key is not None else set()
    messages = {direction: side.message(shared) for direction, side in sides.items()}
    return Api(name, key, span, next(iter(sides.values())).flexible_from, messages)


class _Side:
    """kio's classes of one direction, by name and version, and the structs that come of them.

    A class may be used by several fields, each in versions of its own, so they are merged by name.
    """

    def __init__(self, name: str, direction: str, versions: list[int]) -> None:
        self.prefix = direction.capitalize()
        self.classes: dict[str, dict[int, Any]] = {}
        roots = {version: _root(name, version, direction) for version in versions}
        for version, root in roots.items():
            self._collect(root, version)
        self.root = roots[versions[-1]].__name__
        flexible = [version for version, root in roots.items() if root.__flexible__]
        self.flexible_from = min(flexible, default=NEVER_FLEXIBLE)

    def _collect(self, found: Any, version: int) -> None:
        self.classes.setdefault(found.__name__, {})[version] = found
        for field in fields(found):
            inner = classify_field(field).type_
            if is_dataclass(inner):
                self._collect(inner, version)

    def message(self, shared: set[str]) -> Struct:
        """The whole message; names that the other direction has too get this one's as a prefix."""
        return self._merge(self.root, shared)

    def _merge(self, name: str, shared: set[str]) -> Struct:
        classes = self.classes[name]
        by_name: dict[str, dict[int, Any]] = {}
        for version, found in classes.items():
            for field in fields(found):
                by_name.setdefault(field.name, {})[version] = field
        merged = [self._merge_field(by_name[field], shared) for field in _order(classes)]
        full_name = self.prefix + name if name in shared else name
        return Struct(full_name, tuple(merged), frozenset(classes))

    def _merge_field(self, by_version: dict[int, Any], shared: set[str]) -> Field:
        newest = by_version[max(by_version)]
        shape = classify_field(newest)
        is_struct = is_dataclass(shape.type_)
        kafka_type = "struct" if is_struct else newest.metadata["kafka_type"]
        nullable = _nullable_versions(by_version, kafka_type)
        return Field(
            name=_plain_name(newest.name, kafka_type),
            type=_PLAIN_TYPES.get(kafka_type, kafka_type),
            is_array=shape.is_array,
            struct=self._merge(shape.type_.__name__, shared) if is_struct else None,
            versions=frozenset(by_version),
            nullable=nullable,
            tag=newest.metadata.get("tag"),
            default=_default(newest, kafka_type, shape.is_array, bool(nullable)),
        )


def _root(name: str, version: int, direction: str) -> Any:
    module = importlib.import_module(f"kio.schema.{name}.v{version}.{direction}")
    wanted = name.replace("_", "") + ("" if direction == "data" else direction)
    return next(found for found in vars(module).values() if _class_name(found).lower() == wanted)


def _class_name(found: object) -> str:
    return found.__name__ if isinstance(found, type) else ""


def _order(classes: dict[int, Any]) -> list[str]:
    """An order of all fields that agrees with each version's order."""
    after: TopologicalSorter[str] = TopologicalSorter()
    for _, found in sorted(classes.items()):
        names = [field.name for field in fields(found)]
        for index, name in enumerate(names):
            after.add(name, *names[:index][-1:])
    return list(after.static_order())


def _plain_name(name: str, kafka_type: str) -> str:
    """kio drops the unit where its type knows it; a plain integer must say it."""
    return f"{name}_ms" if kafka_type.startswith(("timedelta", "datetime")) else name


def _nullable_versions(by_version: dict[int, Any], kafka_type: str) -> Versions:
    if kafka_type in ("uuid", "datetime_i64"):
        return frozenset()  # None is kio's word for zero and -1: the wire has no null for them
    return frozenset(version for version, field in by_version.items() if is_optional(field))


def _default(field: Any, kafka_type: str, is_array: bool, is_nullable: bool) -> object:
    """The schema's default where it has one, else None, or the type's zero; lists and structs aside."""
    if is_nullable and (is_array or field.default is MISSING):
        return None
    if is_array or kafka_type in ("uuid", "struct"):
        return None
    if kafka_type == "datetime_i64":
        return _NO_TIME if is_optional(field) else 0
    if field.default is MISSING:
        return {"string": "", "bytes": b"", "records": b"", "bool": False, "float64": 0.0}.get(kafka_type, 0)
    if kafka_type.startswith("timedelta"):
        return round(field.default.total_seconds() * 1000)
    return _plain_value(field.default)


def _plain_value(value: Any) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return str(value) if isinstance(value, str) else value
