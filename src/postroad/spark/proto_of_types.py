"""The Protobuf schema of a type of Spark's, where nobody has given one.

Fields are numbered as they stand, and each may be null but for lists and maps, which are then empty. So a
column of a new query may be added at the end; elsewhere it would take another one's number (`renumbered`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from postroad.errors import ConfigurationError
from postroad.schemas.protobuf import ProtoFile, ProtoMessage
from postroad.spark.proto_types import TIMESTAMP, TIMESTAMP_TYPE

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final[dict[Any, str]] = {
    pa.bool_(): "bool",
    pa.int8(): "int32",
    pa.int16(): "int32",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    TIMESTAMP_TYPE: TIMESTAMP,
}
_KEYS: Final = ("bool", "int32", "int64", "string")


def file_of(kind: Any, name: str) -> str:
    """A .proto file whose first message is for a struct. Raises ConfigurationError."""
    lines = list(_message(kind, name, ""))
    if any(TIMESTAMP in line for line in lines):
        lines = ['import "google/protobuf/timestamp.proto";', *lines]
    return "\n".join(['syntax = "proto3";', *lines]) + "\n"


def renumbered(old: ProtoFile, new: ProtoFile) -> str:
    """A field of the same message that has another number than before, or another's; "" if there is none.

    What stands on the wire has no names, so messages would be taken for each other's.
    """
    known = {name: made for name, made in old.types() if isinstance(made, ProtoMessage)}
    for name, made in new.types():
        if name not in known or not isinstance(made, ProtoMessage):
            continue
        names = {each.number: each.name for each in known[name].fields}
        numbers = {each.name: each.number for each in known[name].fields}
        for each in made.fields:
            if (
                names.get(each.number, each.name) != each.name
                or numbers.get(each.name, each.number) != each.number
            ):
                return f"{name}.{each.name}"
    return ""


def _message(kind: Any, name: str, indent: str) -> Iterator[str]:
    inner = indent + "  "
    yield f"{indent}message {name} {{"
    taken = {field.name for field in kind}
    for number, field in enumerate(kind, 1):
        if not _NAME.fullmatch(field.name):
            raise ConfigurationError(
                f"A field of Protobuf can't be called {field.name!r}: rename it, or give valueSchema."
            )
        nested = _nested_name(field.name, taken)
        struct = _struct_in(field.type)
        if struct is not None:
            taken.add(nested)
            yield from _message(struct, nested, inner)
        yield f"{inner}{_typed(field.type, nested)} {field.name} = {number};"
    yield f"{indent}}}"


def _nested_name(field: str, taken: set[str]) -> str:
    """Messages and fields share their names' room."""
    name = f"{field[:1].upper()}{field[1:]}"
    while name in taken:
        name += "_"
    return name


def _struct_in(kind: Any) -> Any:
    if pa.types.is_map(kind):
        kind = kind.item_type
    elif pa.types.is_list(kind):
        kind = kind.value_type
    return kind if pa.types.is_struct(kind) else None


def _typed(kind: Any, nested: str) -> str:
    if pa.types.is_map(kind):
        key = _plain(kind.key_type, nested)
        if key not in _KEYS:
            raise ConfigurationError(f"The keys of a Protobuf map can't be {kind.key_type}.")
        return f"map<{key}, {_plain(kind.item_type, nested)}>"
    if pa.types.is_list(kind):
        return f"repeated {_plain(kind.value_type, nested)}"
    return f"optional {_plain(kind, nested)}"


def _plain(kind: Any, nested: str) -> str:
    if pa.types.is_struct(kind):
        return nested
    if kind not in _PLAIN:
        raise ConfigurationError(f"There is no Protobuf type for {kind} there: cast it, or give valueSchema.")
    return _PLAIN[kind]
