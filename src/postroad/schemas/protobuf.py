"""Protobuf schemas: one file with its messages and enums, checked, and written in a canonical form.

It comes as the text of a .proto file (`protobuf_text.py`), or as a FileDescriptorProto in base64, which is
how confluent-kafka's serializer sends it (`protobuf_descriptor.py`). Options, services and comments are left
out of the canonical form: they say nothing about messages on the wire."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from postroad.errors import InvalidSchema

SCALARS: Final = (
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes",
    "uint32", "sfixed32", "sfixed64", "sint32", "sint64",
)  # fmt: skip
KEY_TYPES: Final = frozenset({*SCALARS} - {"double", "float", "bytes"})
NUMBER_MAX: Final = (1 << 29) - 1
RESERVED: Final = range(19_000, 20_000)
DEPTH_MAX: Final = 64
NAME_MAX: Final = 1_000  # characters of a type's full name, which is looked for in each scope around it
MESSAGE, ENUM = "message", "enum"


@dataclass
class ProtoField:
    """`type` is a scalar's name, or the full name of a message or an enum once the file is linked."""

    name: str
    number: int
    type: str
    label: str = ""  # optional, required or repeated, where it is written
    oneof: str = ""
    key: str = ""  # of a map: the keys' type, and `type` is that of the values
    default: str = ""  # proto2, as it is written

    @property
    def is_map(self) -> bool:
        return bool(self.key)

    @property
    def is_repeated(self) -> bool:
        return self.label == "repeated"


@dataclass
class ProtoEnum:
    name: str
    values: list[tuple[str, int]] = field(default_factory=list)
    allow_alias: bool = False


@dataclass
class ProtoMessage:
    name: str
    fields: list[ProtoField] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    reserved: list[tuple[int, int]] = field(default_factory=list)  # first and last number
    reserved_names: list[str] = field(default_factory=list)
    extensions: list[tuple[int, int]] = field(default_factory=list)

    @property
    def oneofs(self) -> dict[str, list[ProtoField]]:
        """The fields of each, by its name."""
        found: dict[str, list[ProtoField]] = {}
        for each in self.fields:
            if each.oneof:
                found.setdefault(each.oneof, []).append(each)
        return found


@dataclass
class ProtoFile:
    """`known` has all types that fields may name, by full name, once the file is linked; files that were
    linked with each other share it."""

    syntax: str = "proto2"
    package: str = ""
    imports: list[tuple[str, str]] = field(default_factory=list)  # the file; "public", "weak" or ""
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    known: dict[str, ProtoMessage | ProtoEnum] = field(default_factory=dict)

    def types(self) -> Iterator[tuple[str, ProtoMessage | ProtoEnum]]:
        """The file's own types by their full names."""
        yield from _types(self.messages, self.enums, self.package)


def _types(
    messages: Sequence[ProtoMessage], enums: Sequence[ProtoEnum], scope: str
) -> Iterator[tuple[str, ProtoMessage | ProtoEnum]]:
    for enum in enums:
        yield _full_name(scope, enum.name), enum
    for message in messages:
        full = _full_name(scope, message.name)
        yield full, message
        yield from _types(message.messages, message.enums, full)


def _full_name(scope: str, name: str) -> str:
    if len(scope) + len(name) > NAME_MAX:
        raise InvalidSchema(f"The name {name[:50]}… is longer than {NAME_MAX} characters with its package.")
    return _within(scope, name)


def _within(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


# --- linking


def link(file: ProtoFile, imported: Collection[str], known: dict[str, ProtoMessage | ProtoEnum]) -> None:
    """Every field's type gets its full name. `imported`: names of the files that can be reached; `known`: the
    types in them, to which those of this one are added. Raises InvalidSchema."""
    for name, _ in file.imports:
        if name not in imported:
            raise InvalidSchema(f"The imported file {name!r} is not among the references.")
    file.known = known
    for full, made in file.types():
        if full in file.known:
            raise InvalidSchema(f"The type {full} is defined twice.")
        file.known[full] = made
    for full, made in list(file.types()):
        if isinstance(made, ProtoEnum):
            _check_enum(full, made, file.syntax)
        else:
            _check_fields(full, made)
            for each in made.fields:
                each.type = _linked(each.type, full, file)


def _linked(name: str, scope: str, file: ProtoFile) -> str:
    """The innermost scope that knows the name's first part decides, as protoc has it."""
    if name in SCALARS:
        return name
    if len(name) > NAME_MAX:
        raise InvalidSchema(f"{scope}: there is no type {name[:50]}….")
    if name.startswith("."):
        if name[1:] in file.known:
            return name[1:]
        raise InvalidSchema(f"{scope}: there is no type {name[1:]!r}.")
    while True:
        full = _within(scope, name)
        if full in file.known:
            return full
        if not scope:
            raise InvalidSchema(f"There is no type {name!r}.")
        scope = scope.rpartition(".")[0]


def _check_fields(full: str, message: ProtoMessage) -> None:
    names: set[str] = set()
    numbers: set[int] = set()
    reserved, reserved_names = sorted(message.reserved), {*message.reserved_names}
    lasts = list(accumulate((last for _, last in reserved), max))  # up to each range
    for each in message.fields:
        where = f"{full}.{each.name}"
        if each.name in names or each.number in numbers:
            raise InvalidSchema(f"{where}: the name or the number {each.number} is there twice.")
        if not 1 <= each.number <= NUMBER_MAX or each.number in RESERVED:
            raise InvalidSchema(f"{where}: {each.number} can't be the number of a field.")
        before = bisect_right(reserved, each.number, key=lambda limits: limits[0])
        if before and lasts[before - 1] >= each.number:
            raise InvalidSchema(f"{where}: the number {each.number} is reserved.")
        if each.name in reserved_names:
            raise InvalidSchema(f"{where}: the name is reserved.")
        if each.is_map and each.key not in KEY_TYPES:
            raise InvalidSchema(f"{where}: {each.key} can't be the type of a map's keys.")
        names.add(each.name)
        numbers.add(each.number)


def _check_enum(full: str, enum: ProtoEnum, syntax: str) -> None:
    if not enum.values:
        raise InvalidSchema(f"{full}: an enum has one value at least.")
    if syntax == "proto3" and enum.values[0][1] != 0:
        raise InvalidSchema(f"{full}: the first value of an enum is 0 in proto3.")
    if len({name for name, _ in enum.values}) != len(enum.values):
        raise InvalidSchema(f"{full}: a value's name is there twice.")
    if not enum.allow_alias and len({number for _, number in enum.values}) != len(enum.values):
        raise InvalidSchema(f"{full}: a value's number is there twice, without allow_alias.")
    if not all(-(1 << 31) <= number < 1 << 31 for _, number in enum.values):
        raise InvalidSchema(f"{full}: a value's number needs more than 32 bits.")


# --- the canonical form, a .proto file


def canonical(file: ProtoFile) -> str:
    lines = [f'syntax = "{file.syntax}";']
    if file.package:
        lines += [f"package {file.package};"]
    if file.imports:
        lines += [
            "",
            *(f'import {kind + " " if kind else ""}"{name}";' for name, kind in sorted(file.imports)),
        ]
    for message in file.messages:
        lines += ["", *_message_lines(message, file, "")]
    for enum in file.enums:
        lines += ["", *_enum_lines(enum, "")]
    return "\n".join(lines) + "\n"


def _message_lines(message: ProtoMessage, file: ProtoFile, indent: str) -> Iterator[str]:
    inner = indent + "  "
    yield f"{indent}message {message.name} {{"
    for first, last in message.reserved:
        yield f"{inner}reserved {_range(first, last)};"
    for name in message.reserved_names:
        yield f'{inner}reserved "{name}";'
    for first, last in message.extensions:
        yield f"{inner}extensions {_range(first, last)};"
    oneofs = message.oneofs
    for each in message.fields:
        if not each.oneof:
            yield inner + _field_line(each, file)
        elif each is oneofs[each.oneof][0]:
            yield f"{inner}oneof {each.oneof} {{"
            yield from (f"{inner}  {_field_line(member, file)}" for member in oneofs[each.oneof])
            yield f"{inner}}}"
    for nested in message.messages:
        yield from _message_lines(nested, file, inner)
    for enum in message.enums:
        yield from _enum_lines(enum, inner)
    yield f"{indent}}}"


def _field_line(each: ProtoField, file: ProtoFile) -> str:
    type_ = each.type if each.type in SCALARS else f".{each.type}"
    if each.is_map:
        return f"map<{each.key}, {type_}> {each.name} = {each.number};"
    label = f"{each.label} " if each.label and not each.oneof else ""
    default = f" [default = {each.default}]" if each.default else ""
    return f"{label}{type_} {each.name} = {each.number}{default};"


def _enum_lines(enum: ProtoEnum, indent: str) -> Iterator[str]:
    yield f"{indent}enum {enum.name} {{"
    if enum.allow_alias:
        yield f"{indent}  option allow_alias = true;"
    for name, number in enum.values:
        yield f"{indent}  {name} = {number};"
    yield f"{indent}}}"


def _range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= NUMBER_MAX else last}"
