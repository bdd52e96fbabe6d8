"""Arrow → Protobuf messages, a column at a time: the other direction of `proto_reading`.

Fields come in the order of their numbers, numbers of proto3 packed, and what proto3 can't tell from a field
that is not there is left out: the bytes are those of Google's own libraries.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from postroad.errors import InvalidRecord
from postroad.schemas.protobuf import ProtoEnum, ProtoField, ProtoFile, ProtoMessage
from postroad.spark.lanes import Numbers
from postroad.spark.proto_reading import BYTES, wire_of
from postroad.spark.proto_types import TIMESTAMP, has_presence
from postroad.spark.ragged import (
    Ragged,
    binaries,
    counts,
    fixed,
    nothing,
    same,
    scattered,
    varints,
    woven,
    zigzags,
)

_FIXED: Final = {
    "double": np.float64, "float": np.float32, "sfixed32": np.int32, "sfixed64": np.int64,
    "fixed32": np.uint32,
}  # fmt: skip
_KEY, _VALUE = 1, 2  # of a map's entry
_SECOND_US: Final = 1_000_000


def write(file: ProtoFile, full_name: str, values: Any) -> Ragged:
    """Structs of the message's Arrow type (`proto_types`), none of them null. Raises InvalidRecord for what
    the schema doesn't allow."""
    message = file.known[full_name]
    assert isinstance(message, ProtoMessage)
    _check_oneofs(message, values)
    columns = sorted(enumerate(message.fields), key=lambda each: each[1].number)
    parts = [_field(file, each, values.field(at)) for at, each in columns]
    return woven(parts, len(values)) if parts else nothing(len(values))


def _check_oneofs(message: ProtoMessage, values: Any) -> None:
    for name in message.oneofs:
        members = [at for at, each in enumerate(message.fields) if each.oneof == name]
        given = np.sum([_is_given(values.field(at)) for at in members], axis=0)
        if (given > 1).any():
            raise InvalidRecord(f"More than one field of the Protobuf oneof {name} has a value.")


def _is_given(values: Any) -> Numbers:
    given: Numbers = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    return given


def _field(file: ProtoFile, field: ProtoField, values: Any) -> Ragged:
    """A field of every row, with its tags."""
    valid = _is_given(values) > 0
    if not valid.all() and file.syntax == "proto2" and field.label == "required":
        raise InvalidRecord(f"Field {field.name} is null, and the Protobuf schema requires it.")
    which = np.flatnonzero(valid)
    there = values.filter(pa.array(valid))
    if field.is_map:
        found = _grouped(_entries(file, field, there), there)
    elif field.is_repeated:
        found = _repeated(file, field, there)
    else:
        found = _value(file, field.type, there)
        if not has_presence(file, field):
            some = _not_zero(found)
            which, found = which[some], _only(found, some)
        found = _tagged(file, field.number, field.type, found)
    return scattered([(which, found)], len(values))


def _repeated(file: ProtoFile, field: ProtoField, lists: Any) -> Ragged:
    elements = lists.flatten()
    if elements.null_count:
        raise InvalidRecord(f"An element of {field.name} is null, which Protobuf does not have.")
    found = _value(file, field.type, elements)
    if wire_of(file, field.type) == BYTES or file.syntax == "proto2":
        return _grouped(_tagged(file, field.number, field.type, found), lists)
    packed = _grouped(found, lists)
    some = packed.lengths > 0
    which, payload = np.flatnonzero(some), _only(packed, some)
    parts = [same(_tag(field.number, BYTES), len(which)), _sized(payload)]
    return scattered([(which, woven(parts, len(which)))], len(lists))


def _entries(file: ProtoFile, field: ProtoField, maps: Any) -> Ragged:
    span = slice(maps.offsets[0].as_py() if len(maps) else 0, maps.offsets[-1].as_py() if len(maps) else 0)
    keys, items = maps.keys[span], maps.items[span]
    if items.null_count:
        raise InvalidRecord(f"A value of the map {field.name} is null, which Protobuf does not have.")
    pair = woven(
        [
            _tagged(file, _KEY, field.key, _value(file, field.key, keys)),
            _tagged(file, _VALUE, field.type, _value(file, field.type, items)),
        ],
        len(keys),
    )
    return woven([same(_tag(field.number, BYTES), len(keys)), _sized(pair)], len(keys))


def _grouped(elements: Ragged, lists: Any) -> Ragged:
    """Those of each list as one part of its row."""
    ends = np.concatenate([[0], np.cumsum(elements.lengths)])
    upto = np.concatenate([[0], np.cumsum(counts(lists))])
    return Ragged(elements.data, ends[upto[1:]] - ends[upto[:-1]])


def _not_zero(found: Ragged) -> Any:
    """Rows that have a byte other than zero: of zeros, empty texts and first values all are zero."""
    upto = np.concatenate([[0], np.cumsum(found.data != 0)])
    ends = np.cumsum(found.lengths)
    return upto[ends] > upto[ends - found.lengths]


def _only(found: Ragged, some: Any) -> Ragged:
    return Ragged(found.data[np.repeat(some, found.lengths)], found.lengths[some])


# --- the wire


def _tag(number: int, wire: int) -> bytes:
    return varints(np.array([number << 3 | wire], np.uint64)).data.tobytes()


def _tagged(file: ProtoFile, number: int, type_: str, found: Ragged) -> Ragged:
    rows = len(found.lengths)
    return woven([same(_tag(number, wire_of(file, type_)), rows), found], rows)


def _sized(found: Ragged) -> Ragged:
    return woven([_unsigned(found.lengths), found], len(found.lengths))


def _unsigned(values: Numbers) -> Ragged:
    return varints(values.view(np.uint64))


# --- values


def _value(file: ProtoFile, type_: str, values: Any) -> Ragged:
    """One value of every row, without its tag; none is null."""
    if not len(values):
        return nothing(0)
    if type_ == TIMESTAMP:
        return _sized(_timestamps(values))
    made = file.known.get(type_)
    if isinstance(made, ProtoEnum):
        return _enum(made, values)
    if isinstance(made, ProtoMessage):
        return _sized(write(file, type_, values))
    if type_ in ("string", "bytes"):
        return _sized(binaries(values))
    return _number(type_, values)


def _number(type_: str, values: Any) -> Ragged:
    if type_ in ("uint64", "fixed64"):
        numbers = _of_decimals(type_, values)
        return varints(numbers) if type_ == "uint64" else fixed(numbers.view(np.uint8).reshape(-1, 8))
    found = values.to_numpy(zero_copy_only=False)
    if type_ in ("uint32", "fixed32") and ((found < 0) | (found >= 1 << 32)).any():
        raise InvalidRecord(f"A number does not fit into Protobuf's {type_}.")
    if type_ in _FIXED:
        flat = np.ascontiguousarray(found.astype(_FIXED[type_]))
        return fixed(flat.view(np.uint8).reshape(len(flat), -1))
    whole = found.astype(np.int64)
    return zigzags(whole) if type_ in ("sint32", "sint64") else _unsigned(whole)


def _of_decimals(type_: str, values: Any) -> Any:
    """Whole decimals of 16 bytes, the lowest first."""
    table = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
    table = table[values.offset : values.offset + len(values)]
    if table[:, 1].any():
        raise InvalidRecord(f"A number does not fit into Protobuf's {type_}.")
    return np.ascontiguousarray(table[:, 0])


def _enum(enum: ProtoEnum, values: Any) -> Ragged:
    """By its values' names; as reading has it, one without a name is its number."""
    numbers = dict(enum.values)
    codes = values.dictionary_encode()
    known = []
    for text in codes.dictionary.to_pylist():
        if text not in numbers and not _is_number(text):
            raise InvalidRecord(f"{text!r} is no value of the Protobuf enum {enum.name}.")
        known.append(numbers[text] if text in numbers else int(text))
    return _unsigned(np.array(known, np.int64)[codes.indices.to_numpy()])


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 11 and -(1 << 31) <= int(text) < 1 << 31


def _timestamps(values: Any) -> Ragged:
    micros = values.view(pa.int64()).to_numpy()
    seconds, nanos = micros // _SECOND_US, micros % _SECOND_US * 1000
    parts = []
    for number, numbers in ((_KEY, seconds), (_VALUE, nanos)):
        some = np.flatnonzero(numbers)
        tag = same(_tag(number, 0), len(some))
        parts.append(scattered([(some, woven([tag, _unsigned(numbers[some])], len(some)))], len(numbers)))
    return woven(parts, len(micros))
