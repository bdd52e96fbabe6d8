"""What a reader's Protobuf schema can't read of what a writer's has written.

On the wire there are numbers and wire types, no names: a field may be called anew, and a number keeps a type
of the same group. Messages and enums are known by their full names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.schemas.protobuf import SCALARS, ProtoEnum, ProtoField, ProtoFile, ProtoMessage

_GROUPS: Final = (
    {"int32", "uint32", "int64", "uint64", "bool", "enum"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
_PACKED: Final = frozenset({*SCALARS} - {"string", "bytes"} | {"enum"})


def differences(reader: ProtoFile, writer: ProtoFile) -> list[str]:
    """Why messages of the writer can't be read by the reader; empty: they can."""
    ours = _relative(reader)
    found: list[str] = []
    for name, written in _relative(writer).items():
        if isinstance(written, ProtoMessage):
            if not isinstance(ours.get(name), ProtoMessage):
                found.append(f"/{name}: the message was removed")
            else:
                found += _messages(ours[name], written, name, reader, writer)
    return found


def _relative(file: ProtoFile) -> dict[str, ProtoMessage | ProtoEnum]:
    """The file's own types, without their package: that is not on the wire."""
    skip = len(file.package) + 1 if file.package else 0
    return {full[skip:]: made for full, made in file.types()}


def _messages(
    new: ProtoMessage | ProtoEnum, old: ProtoMessage, path: str, reader: ProtoFile, writer: ProtoFile
) -> Iterator[str]:
    assert isinstance(new, ProtoMessage)
    ours, theirs = {each.number: each for each in new.fields}, {each.number: each for each in old.fields}
    oneofs = new.oneofs
    for number, field in theirs.items():
        at = f"/{path}/{number} ({field.name})"
        mine = ours.get(number)
        if mine is not None:
            yield from _fields(mine, field, at, reader, writer)
        elif field.label == "required":
            yield f"{at}: a required field was removed"
        elif field.oneof and field.oneof in oneofs:
            yield f"{at}: the field was removed from the oneof {field.oneof}"
    for number, field in ours.items():
        if number not in theirs and field.label == "required":
            yield f"/{path}/{number} ({field.name}): a required field was added"
    for oneof, members in oneofs.items():
        moved = [each for each in members if each.number in theirs and not theirs[each.number].oneof]
        if len(moved) > 1:
            names = ", ".join(each.name for each in moved)
            yield f"/{path}: several fields were moved into the oneof {oneof}: {names}"


def _fields(new: ProtoField, old: ProtoField, at: str, reader: ProtoFile, writer: ProtoFile) -> Iterator[str]:
    ours, theirs = _kind(new, reader), _kind(old, writer)
    if new.is_map != old.is_map or (new.is_map and not _same_group(new.key, old.key)):
        yield f"{at}: a map was changed into something else"
    elif ours == theirs == "message":
        if _local(new.type, reader) != _local(old.type, writer):
            yield f"{at}: the message's type was changed from {old.type} to {new.type}"
    elif not _same_group(ours, theirs):
        yield f"{at}: the type was changed from {old.type} to {new.type}"
    elif new.is_repeated != old.is_repeated and ours in _PACKED:
        yield f"{at}: the field was changed from {old.label or 'single'} to {new.label or 'single'}"


def _kind(field: ProtoField, file: ProtoFile) -> str:
    if field.type in SCALARS:
        return field.type
    return "enum" if isinstance(file.known.get(field.type), ProtoEnum) else "message"


def _same_group(ours: str, theirs: str) -> bool:
    return ours == theirs or any(ours in group and theirs in group for group in _GROUPS)


def _local(name: str, file: ProtoFile) -> str:
    return name.removeprefix(f"{file.package}.") if file.package else name
