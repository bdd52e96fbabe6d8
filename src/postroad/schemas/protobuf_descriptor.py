"""FileDescriptorProto, Protobuf's own form of a .proto file: read and written, as far as messages go.

    FileDescriptorProto   1 name  2 package  3 dependency  4 message  5 enum  10 public  11 weak  12 syntax
    DescriptorProto       1 name  2 field  3 nested  4 enum  5 extension range  7 options  8 oneof
                          9 reserved range  10 reserved name
    FieldDescriptorProto  1 name  3 number  4 label  5 type  6 type name  7 default  9 oneof  17 proto3
    optional EnumDescriptorProto   1 name  2 value (1 name, 2 number)  3 options (2 allow alias)

A map is a repeated message that is nested and called map_entry in its options (7); `optional` in proto3 is a
oneof of its own with a made-up name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from postroad.errors import InvalidSchema
from postroad.schemas.protobuf import DEPTH_MAX, ProtoEnum, ProtoField, ProtoFile, ProtoMessage

_TYPES: Final = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool",
    9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64",
}  # fmt: skip
_NUMBERS: Final = {name: number for number, name in _TYPES.items()}
_GROUP, _MESSAGE, _ENUM = 10, 11, 14
_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}


class _Broken(Exception):
    """The bytes are no Protobuf message."""


def decode(data: bytes) -> ProtoFile:
    """Raises InvalidSchema."""
    try:
        return _file(data)
    except (_Broken, UnicodeDecodeError):
        raise InvalidSchema(
            "The Protobuf schema is neither a .proto file nor a FileDescriptorProto."
        ) from None


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire_type == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise _Broken
            yield number, data[at : at + length]
            at += length
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            raise _Broken
    if at != len(data):
        raise _Broken


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise _Broken
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
    raise _Broken


def _collected(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in _parts(data):
        found.setdefault(number, []).append(value)
    return found


def _text(found: dict[int, list[Any]], number: int) -> str:
    return _bytes(found, number)[-1].decode() if number in found else ""


def _bytes(found: dict[int, list[Any]], number: int) -> list[bytes]:
    values = found.get(number, [])
    if not all(isinstance(value, bytes) for value in values):
        raise _Broken
    return values


def _int(found: dict[int, list[Any]], number: int) -> int:
    value = found.get(number, [0])[-1]
    if not isinstance(value, int):
        raise _Broken
    return value - (1 << 64) if value >= 1 << 63 else value


def _file(data: bytes) -> ProtoFile:
    found = _collected(data)
    if 1 not in found:
        raise _Broken
    public, weak = {*_varints(found, 10)}, {*_varints(found, 11)}
    file = ProtoFile(_text(found, 12) or "proto2", _text(found, 2))
    if file.syntax not in ("proto2", "proto3"):
        raise InvalidSchema("The syntax must be proto2 or proto3.")
    for number, name in enumerate(_bytes(found, 3)):
        file.imports.append(
            (name.decode(), "public" if number in public else "weak" if number in weak else "")
        )
    file.messages = [_message(each, file.syntax, 0) for each in _bytes(found, 4)]
    file.enums = [_enum(each) for each in _bytes(found, 5)]
    return file


def _varints(found: dict[int, list[Any]], number: int) -> Iterator[int]:
    """Repeated numbers may come packed."""
    for value in found.get(number, []):
        at = 0
        while isinstance(value, bytes) and at < len(value):
            each, at = _varint(value, at)
            yield each
        if isinstance(value, int):
            yield value


def _message(data: bytes, syntax: str, depth: int) -> ProtoMessage:
    if depth > DEPTH_MAX:
        raise InvalidSchema(f"Messages nest deeper than {DEPTH_MAX} levels.")
    found = _collected(data)
    message = ProtoMessage(_text(found, 1))
    oneofs = [_text(_collected(each), 1) for each in _bytes(found, 8)]
    entries = {}
    for each in _bytes(found, 3):
        nested = _message(each, syntax, depth + 1)
        options = _collected(_bytes(_collected(each), 7)[-1]) if 7 in _collected(each) else {}
        if _int(options, 7):
            entries[nested.name] = nested
        else:
            message.messages.append(nested)
    message.fields = [_field(_collected(each), oneofs, entries, syntax) for each in _bytes(found, 2)]
    message.enums = [_enum(each) for each in _bytes(found, 4)]
    for number, ranges in ((9, message.reserved), (5, message.extensions)):
        for each in _bytes(found, number):
            limits = _collected(each)
            ranges.append((_int(limits, 1), _int(limits, 2) - 1))
    message.reserved_names = [each.decode() for each in _bytes(found, 10)]
    return message


def _field(
    found: dict[int, list[Any]], oneofs: list[str], entries: dict[str, ProtoMessage], syntax: str
) -> ProtoField:
    kind, type_name = _int(found, 5), _text(found, 6)
    if kind == _GROUP:
        raise InvalidSchema("Groups are not supported; use a message.")
    type_ = _TYPES.get(kind, "") or type_name
    if not type_:
        raise _Broken
    field = ProtoField(_text(found, 1), _int(found, 3), type_, _LABELS.get(_int(found, 4), ""))
    entry = entries.get(type_name.rpartition(".")[2]) if kind == _MESSAGE and field.is_repeated else None
    if entry is not None and len(entry.fields) == 2:
        by_number = {each.number: each.type for each in entry.fields}
        field.key, field.type, field.label = by_number.get(1, ""), by_number.get(2, ""), ""
        return field
    field.default = _text(found, 7) if 7 in found else ""
    if field.default and type_ in ("string", "bytes"):
        field.default = '"' + field.default.replace("\\", "\\\\").replace('"', '\\"') + '"'
    is_made_up = bool(_int(found, 17))
    if 9 in found and not is_made_up:
        if not 0 <= _int(found, 9) < len(oneofs):
            raise _Broken
        field.oneof = oneofs[_int(found, 9)]
    if syntax == "proto3" and not is_made_up and field.label == "optional":
        field.label = ""
    if field.oneof:
        field.label = ""
    return field


def _enum(data: bytes) -> ProtoEnum:
    found = _collected(data)
    enum = ProtoEnum(_text(found, 1))
    for each in _bytes(found, 2):
        value = _collected(each)
        enum.values.append((_text(value, 1), _int(value, 2)))
    for options in _bytes(found, 3):
        enum.allow_alias = bool(_int(_collected(options), 2))
    return enum


# --- writing


def encode(file: ProtoFile, name: str) -> bytes:
    """A file that is linked, as a FileDescriptorProto of that name."""
    parts = [_of_text(1, name), _of_text(2, file.package)]
    parts += [_of_text(3, imported) for imported, _ in file.imports]
    parts += [_of_bytes(4, _encoded_message(each, file, file.package)) for each in file.messages]
    parts += [_of_bytes(5, _encoded_enum(each)) for each in file.enums]
    for number, kind in ((10, "public"), (11, "weak")):
        parts += [_of_int(number, at) for at, (_, is_) in enumerate(file.imports) if is_ == kind]
    parts.append(_of_text(12, file.syntax if file.syntax != "proto2" else ""))
    return b"".join(parts)


def _encoded_message(message: ProtoMessage, file: ProtoFile, scope: str) -> bytes:
    full = f"{scope}.{message.name}" if scope else message.name
    made_up = [f"_{each.name}" for each in message.fields if _is_proto3_optional(each, file)]
    numbers = {name: number for number, name in enumerate([*message.oneofs, *made_up])}
    parts = [_of_text(1, message.name)]
    for each in message.fields:
        name = f"_{each.name}" if _is_proto3_optional(each, file) else each.oneof
        oneof = numbers[name] if name else None
        parts.append(_of_bytes(2, _encoded_field(each, file, full, oneof)))
    parts += [_of_bytes(3, _encoded_message(each, file, full)) for each in message.messages]
    parts += [_of_bytes(3, _encoded_entry(each, file)) for each in message.fields if each.is_map]
    parts += [_of_bytes(4, _encoded_enum(each)) for each in message.enums]
    parts += [_of_bytes(5, _of_range(each)) for each in message.extensions]
    parts += [_of_bytes(8, _of_text(1, each)) for each in numbers]
    parts += [_of_bytes(9, _of_range(each)) for each in message.reserved]
    parts += [_of_text(10, each) for each in message.reserved_names]
    return b"".join(parts)


def _is_proto3_optional(field: ProtoField, file: ProtoFile) -> bool:
    return file.syntax == "proto3" and field.label == "optional"


def _encoded_field(field: ProtoField, file: ProtoFile, full: str, oneof: int | None) -> bytes:
    label = 3 if field.is_map else {"required": 2, "repeated": 3}.get(field.label, 1)
    parts = [_of_text(1, field.name), _of_int(3, field.number), _of_int(4, label)]
    if field.is_map:
        parts += [_of_int(5, _MESSAGE), _of_text(6, f".{full}.{_entry_name(field)}")]
    elif field.type in _NUMBERS:
        parts.append(_of_int(5, _NUMBERS[field.type]))
    else:
        is_enum = isinstance(file.known.get(field.type), ProtoEnum)
        parts += [_of_int(5, _ENUM if is_enum else _MESSAGE), _of_text(6, f".{field.type}")]
    parts.append(_of_text(7, field.default.strip("\"'")))
    if oneof is not None:
        parts.append(_of_int(9, oneof))
    if _is_proto3_optional(field, file):
        parts.append(_of_int(17, 1))
    return b"".join(parts)


def _entry_name(field: ProtoField) -> str:
    return "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"


def _encoded_entry(field: ProtoField, file: ProtoFile) -> bytes:
    key, value = ProtoField("key", 1, field.key), ProtoField("value", 2, field.type)
    parts = [_of_text(1, _entry_name(field))]
    parts += [_of_bytes(2, _encoded_field(each, file, "", None)) for each in (key, value)]
    parts.append(_of_bytes(7, _of_int(7, 1)))
    return b"".join(parts)


def _encoded_enum(enum: ProtoEnum) -> bytes:
    parts = [_of_text(1, enum.name)]
    parts += [_of_bytes(2, _of_text(1, name) + _of_int(2, number)) for name, number in enum.values]
    if enum.allow_alias:
        parts.append(_of_bytes(3, _of_int(2, 1)))
    return b"".join(parts)


def _of_range(limits: tuple[int, int]) -> bytes:
    return _of_int(1, limits[0]) + _of_int(2, limits[1] + 1)


def _of_int(number: int, value: int) -> bytes:
    return _written(number << 3) + _written(value & ((1 << 64) - 1))


def _of_bytes(number: int, value: bytes) -> bytes:
    return _written(number << 3 | 2) + _written(len(value)) + value


def _of_text(number: int, value: str) -> bytes:
    return _of_bytes(number, value.encode()) if value else b""


def _written(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
