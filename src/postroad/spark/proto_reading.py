"""Protobuf messages → Arrow: a reader for each message of a schema, made once.

All messages of a batch are read side by side (`lanes`), one field of each at a time: those that come to the
same field are read together, whatever the others do. Fields that the schema doesn't have are passed over, so
a newer schema reads older messages and the other way round, and the writer's is not needed.

Of a field that is not repeated the last one counts, as Protobuf has it; parts of one message are not merged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from postroad.schemas.protobuf import NUMBER_MAX, ProtoEnum, ProtoField, ProtoFile, ProtoMessage
from postroad.spark.lanes import Lanes, Numbers
from postroad.spark.proto_types import (
    SCALARS,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    has_presence,
    message_type,
    value_type,
)

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
_WIRE: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), EIGHT),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), FOUR),
    **dict.fromkeys(("string", "bytes"), BYTES),
}
_SECONDS_MAX: Final = (1 << 63) // 1_000_000 - 1

Node = Callable[[Lanes], Any]


class _Found:
    """What came of one field: pieces of values, and of which lane each is."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._owners: list[Numbers] = []

    def add(self, values: Any, owners: Numbers) -> None:
        if len(values):
            self._pieces.append(values)
            self._owners.append(owners)

    def last(self, lanes: int, kind: Any) -> Any:
        """The last value of each lane; null where there is none."""
        if len(self._pieces) == 1 and len(self._owners[0]) == lanes:
            return self._pieces[0]  # all lanes had it at the same time, so they are in order
        if not self._pieces:
            return pa.nulls(lanes, kind)
        owners = np.concatenate(self._owners)
        order = np.full(lanes, -1, np.int64)
        order[owners] = np.arange(len(owners))
        return pa.concat_arrays(self._pieces).take(pa.array(order, mask=order < 0))

    def all(self, lanes: int, kind: Any) -> tuple[Any, Any]:
        """All values, one lane after the other, and the offsets of the lanes."""
        if not self._pieces:
            return pa.array([], kind), pa.array(np.zeros(lanes + 1, np.int32))
        owners = np.concatenate(self._owners)
        values = pa.concat_arrays(self._pieces).take(pa.array(np.argsort(owners, kind="stable")))
        counts = np.bincount(owners, minlength=lanes)
        return values, pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


class MessageReader:
    """Reads one message of a schema from lanes that hold nothing else."""

    def __init__(self, file: ProtoFile, full_name: str) -> None:
        message = file.known[full_name]
        assert isinstance(message, ProtoMessage)
        self._file = file
        self._fields = message.fields
        self.kind = message_type(file, full_name)
        self._at = {field.number: index for index, field in enumerate(self._fields)}
        self._read = [self._node(field) for field in self._fields]

    def __call__(self, lanes: Lanes) -> Any:
        found = [_Found() for _ in self._fields]
        active = np.flatnonzero(lanes.at < lanes.end)
        while len(active):
            some = lanes.some(active)
            tags = some.varints()
            lanes.moved(active, some)
            for tag in np.unique(tags).tolist():
                those = active[tags == tag]
                some = lanes.some(those)
                self._field(some, tag, those, found)
                lanes.moved(those, some)
            active = active[lanes.at[active] < lanes.end[active]]
        if not self._fields:
            return pa.array([{}] * len(lanes), self.kind)
        arrays = [self._column(index, each, len(lanes)) for index, each in enumerate(found)]
        return pa.StructArray.from_arrays(arrays, fields=list(self.kind))

    def _field(self, lanes: Lanes, tag: int, owners: Numbers, found: list[_Found]) -> None:
        number, wire = tag >> 3, tag & 7
        index = self._at.get(number)
        if index is None:
            _skip(lanes, number, wire)
            return
        field = self._fields[index]
        expected = BYTES if field.is_map else wire_of(self._file, field.type)
        if wire == expected:
            found[index].add(self._read[index](lanes), owners)
        elif wire == BYTES and field.is_repeated and expected != BYTES:
            self._packed(lanes, index, owners, found[index])
        else:
            _skip(lanes, number, wire)  # of another type in the writer's schema

    def _packed(self, lanes: Lanes, index: int, owners: Numbers, found: _Found) -> None:
        inner = _within(lanes)
        active = np.flatnonzero(inner.at < inner.end)
        while len(active):
            some = inner.some(active)
            found.add(self._read[index](some), owners[active])
            inner.moved(active, some)
            active = active[inner.at[active] < inner.end[active]]

    def _column(self, index: int, found: _Found, lanes: int) -> Any:
        field, kind = self._fields[index], self.kind[index].type
        if field.is_map:
            entries, offsets = found.all(
                lanes, pa.struct([("key", kind.key_type), ("value", kind.item_type)])
            )
            return _as_map(entries, offsets, kind)
        if field.is_repeated:
            values, offsets = found.all(lanes, kind.value_type)
            return pa.ListArray.from_arrays(offsets, values, type=kind)
        values = found.last(lanes, kind)
        if values.null_count and not has_presence(self._file, field):
            return values.fill_null(_default(self._file, field.type))
        return values

    def _node(self, field: ProtoField) -> Node:
        if not field.is_map:
            return _node(self._file, field.type)
        entry = ProtoMessage("Entry", [ProtoField("key", 1, field.key), ProtoField("value", 2, field.type)])
        name = f"{field.name} entry"  # no type can be called so
        file = ProtoFile("proto3", known={**self._file.known, name: entry})
        reader = MessageReader(file, name)
        return lambda lanes: reader(_within(lanes))


def _node(file: ProtoFile, name: str) -> Node:
    """Reads one value, of which the tag has been read."""
    if name == TIMESTAMP:
        reader = MessageReader(file, name)
        return lambda lanes: _timestamps(lanes, reader(_within(lanes)))
    made = file.known.get(name)
    if isinstance(made, ProtoEnum):
        return _enum(made)
    if isinstance(made, ProtoMessage):
        message = MessageReader(file, name)
        return lambda lanes: message(_within(lanes))
    return _scalar(name)


def _scalar(name: str) -> Node:
    kind = SCALARS[name]
    if name == "bytes":
        return lambda lanes: lanes.binaries(*lanes.spans(_length(lanes)))
    if name == "string":
        return lambda lanes: lanes.texts(lanes.binaries(*lanes.spans(_length(lanes))))
    if name == "bool":
        return lambda lanes: pa.array(lanes.varints() != 0)
    if name in ("sint32", "sint64"):
        dtype = np.int32 if name == "sint32" else np.int64
        return lambda lanes: pa.array(lanes.zigzags().astype(dtype))
    if name in ("double", "float", "sfixed32", "sfixed64", "fixed32", "fixed64"):
        return _fixed(name, kind)
    if name == "uint64":
        return lambda lanes: _unsigned(lanes.varints(), kind)
    if name == "uint32":
        return lambda lanes: pa.array((lanes.varints() & np.uint64(0xFFFFFFFF)).astype(np.int64))
    dtype = np.int32 if name == "int32" else np.int64
    return lambda lanes: pa.array(lanes.varints().astype(dtype))


def _fixed(name: str, kind: Any) -> Node:
    dtype = {
        "double": np.float64, "float": np.float32, "sfixed32": np.int32, "sfixed64": np.int64,
        "fixed32": np.uint32, "fixed64": np.uint64,
    }[name]  # fmt: skip
    size = np.dtype(dtype).itemsize

    def read(lanes: Lanes) -> Any:
        values = np.ascontiguousarray(lanes.fixed(size)).view(dtype)[:, 0]
        if name == "fixed64":
            return _unsigned(values, kind)
        return pa.array(values.astype(np.int64) if name == "fixed32" else values)

    return read


def _unsigned(values: Any, kind: Any) -> Any:
    """Decimals of 16 bytes, the lowest first: the upper half is zero."""
    table = np.zeros((len(values), 2), np.uint64)
    table[:, 0] = values
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(table)])


def _enum(enum: ProtoEnum) -> Node:
    names = {number: name for name, number in reversed(enum.values)}  # of aliases the first

    def read(lanes: Lanes) -> Any:
        numbers = lanes.varints().astype(np.int32)
        present, codes = np.unique(numbers, return_inverse=True)
        texts = pa.array([names.get(each, str(each)) for each in present.tolist()], pa.string())
        return texts.take(pa.array(codes.reshape(-1)))

    return read


def _timestamps(lanes: Lanes, found: Any) -> Any:
    seconds = found.field(0).to_numpy(zero_copy_only=False)
    wrong = np.abs(seconds) > _SECONDS_MAX
    if wrong.any():
        lanes.fail(wrong, "a timestamp is too far away")
        seconds = np.where(wrong, 0, seconds)
    nanos = found.field(1).to_numpy(zero_copy_only=False).astype(np.int64)
    return pa.array(seconds * 1_000_000 + nanos // 1000).view(TIMESTAMP_TYPE)


def _as_map(entries: Any, offsets: Any, kind: Any) -> Any:
    """The entries as maps. The last value of a key counts, as Protobuf has it; Arrow and Spark keep each."""
    found = pa.MapArray.from_arrays(offsets, entries.field(0), entries.field(1), type=kind)
    keys = entries.field(0)
    if len(keys) == 0:
        return found
    owners = np.repeat(np.arange(len(found)), np.diff(offsets.to_numpy()))
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = owners * (int(codes.max()) + 1) + codes
    if len(np.unique(pairs)) == len(pairs):
        return found
    backwards = np.unique(pairs[::-1], return_index=True)[1]
    keep = np.sort(len(pairs) - 1 - backwards)
    counts = np.bincount(owners[keep], minlength=len(found))
    kept = entries.take(pa.array(keep))
    fewer = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return pa.MapArray.from_arrays(fewer, kept.field(0), kept.field(1), type=kind)


def _default(file: ProtoFile, name: str) -> Any:
    made = file.known.get(name)
    if isinstance(made, ProtoEnum):
        return made.values[0][0]
    kind = value_type(file, name, ())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar("" if pa.types.is_string(kind) else b"", kind)
    return pa.scalar(False if pa.types.is_boolean(kind) else 0, kind)


# --- the wire


def wire_of(file: ProtoFile, name: str) -> int:
    """How a value of the type stands on the wire."""
    return BYTES if isinstance(file.known.get(name), ProtoMessage) else _WIRE.get(name, VARINT)


def _length(lanes: Lanes) -> Numbers:
    """Lengths of 2^63 and more are below zero, and so refused."""
    return lanes.varints().astype(np.int64)


def _within(lanes: Lanes) -> Lanes:
    """What has its length before it; it is passed over."""
    begin, lengths = lanes.spans(_length(lanes))
    return Lanes(lanes.messages, begin, begin + lengths, lanes.rows)


def _skip(lanes: Lanes, number: int, wire: int) -> None:
    if not 1 <= number <= NUMBER_MAX:
        lanes.fail(np.ones(len(lanes), bool), f"a field has the number {number}")
    elif wire == VARINT:
        lanes.varints()
    elif wire == BYTES:
        lanes.spans(_length(lanes))
    elif wire in (EIGHT, FOUR):
        lanes.spans(np.full(len(lanes), 8 if wire == EIGHT else 4, np.int64))
    else:  # groups, which nobody writes any more
        lanes.fail(np.ones(len(lanes), bool), "a field has an unknown wire type")
