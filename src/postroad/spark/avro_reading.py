"""Avro messages → Arrow: a reader for each pair of the writer's schema and the reader's, made once.

A reader is a tree of nodes, one for each type of the writer's schema: each reads its type for all messages
(`lanes`) and delivers what the reader's schema makes of it. Fields that the reader does not have are passed
over, those that the writer does not have get their default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from postroad.errors import InvalidRecord
from postroad.schemas.avro import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from postroad.schemas.avro_compatibility import by_name, differences, match, written_field
from postroad.spark import avro_types
from postroad.spark.avro_defaults import default_value
from postroad.spark.avro_types import arrow_type
from postroad.spark.lanes import Lanes, Numbers

Node = Callable[[Lanes], Any]
"""Reads one type of all lanes; an array as long as they are many."""

NOTHING_BYTES_MAX: Final = 10_000  # elements of an array that take no bytes
_MILLIS_MAX: Final = (1 << 63) // 1000 - 1


class Unreadable(InvalidRecord):
    """The writer's schema can't be read by the reader's: says why."""


def reader(writer: AvroType, wanted: AvroType) -> Node:
    """Raises Unreadable."""
    reasons = differences(wanted, writer)
    if reasons:
        raise Unreadable(f"it was written by a schema that can't be read as this one: {reasons[0]}")
    return _node(writer, wanted)


def _node(writer: AvroType, wanted: AvroType) -> Node:
    if isinstance(writer, UnionType):
        return _of_union([_node(each, wanted) for each in writer.branches], arrow_type(wanted))
    if isinstance(wanted, UnionType):
        return _as_member(writer, wanted)
    if isinstance(writer, RecordType) and isinstance(wanted, RecordType):
        return _record(writer, wanted)
    if isinstance(writer, ArrayType) and isinstance(wanted, ArrayType):
        return _array(_node(writer.items, wanted.items), arrow_type(wanted))
    if isinstance(writer, MapType) and isinstance(wanted, MapType):
        return _map(_node(writer.values, wanted.values), arrow_type(wanted))
    if isinstance(writer, EnumType) and isinstance(wanted, EnumType):
        return _enum(writer, wanted)
    return _scalar(writer, arrow_type(wanted), wanted)


# --- unions


def _as_member(writer: AvroType, wanted: UnionType) -> Node:
    """A type that is one of several to the reader."""
    kind = arrow_type(wanted)
    if writer.kind == "null":
        return lambda lanes: pa.nulls(len(lanes), kind)
    at = match(wanted, writer)
    assert at is not None, "what can't be read was found before"
    node = _node(writer, wanted.branches[at])
    others = avro_types.branches(wanted)
    if len(others) == 1:
        return node
    if avro_types.widened(wanted):
        return lambda lanes: node(lanes).cast(kind)
    member = others.index(wanted.branches[at])

    def read(lanes: Lanes) -> Any:
        found = node(lanes)
        arrays = [
            found if number == member else pa.nulls(len(lanes), field.type)
            for number, field in enumerate(kind)
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))

    return read


def _of_union(nodes: Sequence[Node], kind: Any) -> Node:
    def read(lanes: Lanes) -> Any:
        numbers = lanes.zigzags()
        wrong = (numbers < 0) | (numbers >= len(nodes))
        if wrong.any():
            lanes.fail(wrong, "a union has no such type")
            numbers = np.where(wrong, -1, numbers)
        present = np.unique(numbers)
        if len(present) == 1 and present[0] >= 0:
            return nodes[int(present[0])](lanes)
        pieces, order, count = [], np.full(len(lanes), -1, np.int64), 0
        for number in present.tolist():
            if number < 0:
                continue
            which = np.flatnonzero(numbers == number)
            some = lanes.some(which)
            piece = nodes[number](some)
            lanes.moved(which, some)
            if piece.null_count == len(piece):
                continue
            order[which] = np.arange(count, count + len(which))
            pieces.append(piece)
            count += len(which)
        if not pieces:
            return pa.nulls(len(lanes), kind)
        return pa.concat_arrays(pieces).take(pa.array(order, mask=order < 0))

    return read


# --- records


def _record(writer: RecordType, wanted: RecordType) -> Node:
    kind = arrow_type(wanted)
    slots: dict[int, int] = {}  # of the writer's fields
    defaults: dict[int, Any] = {}
    theirs = by_name(writer)
    for number, field in enumerate(wanted.fields):
        written = written_field(field, theirs)
        if written is not None:
            slots[writer.fields.index(written)] = number
        else:
            defaults[number] = pa.scalar(default_value(field.default, field.type), kind[number].type)
    steps = [
        (_node(field.type, wanted.fields[slots[at]].type), slots[at])
        if at in slots
        else (_skipped(field.type), -1)
        for at, field in enumerate(writer.fields)
    ]

    def read(lanes: Lanes) -> Any:
        found: list[Any] = [None] * len(wanted.fields)
        for node, slot in steps:
            values = node(lanes)
            if slot >= 0:
                found[slot] = values
        for number, value in defaults.items():
            found[number] = pa.repeat(value, len(lanes))
        if not found:
            return pa.array([{}] * len(lanes), kind)
        return pa.StructArray.from_arrays(found, fields=list(kind))

    return read


def _skipped(type_: AvroType) -> Node:
    """Bytes are passed over without a look, all else is read: that is how its end is found."""
    if type_.kind in ("bytes", "string"):
        return lambda lanes: lanes.spans(lanes.zigzags())
    if isinstance(type_, FixedType):
        return lambda lanes: lanes.spans(np.full(len(lanes), type_.size, np.int64))
    if isinstance(type_, RecordType):
        nodes = [_skipped(field.type) for field in type_.fields]
        return lambda lanes: [node(lanes) for node in nodes]
    return _node(type_, type_)


# --- arrays and maps


def _elements(lanes: Lanes, read: Node) -> tuple[Any, Numbers]:
    """The elements of all lanes, one lane after the other, and how many each has."""
    counts = np.zeros(len(lanes), np.int64)
    pieces, owners = [], []
    active = np.arange(len(lanes))
    left = np.zeros(len(lanes), np.int64)
    limits = np.maximum(lanes.end - lanes.at, NOTHING_BYTES_MAX)
    while len(active):
        fresh = active[left[active] == 0]
        if len(fresh):
            some = lanes.some(fresh)
            left[fresh] = _block(some, limits[fresh] - counts[fresh])
            lanes.moved(fresh, some)
            active = active[left[active] > 0]
            if not len(active):
                break
        some = lanes.some(active)
        pieces.append(read(some))
        owners.append(active)
        lanes.moved(active, some)
        counts[active] += 1
        left[active] -= 1
    if not pieces:
        return None, counts
    order = np.argsort(np.concatenate(owners), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(order)), counts


def _block(lanes: Lanes, limits: Numbers) -> Numbers:
    """How many elements come, so many at most; none: it was the end."""
    counts = lanes.zigzags()
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        some = lanes.some(sized)
        some.zigzags()  # the block's size in bytes
        lanes.moved(sized, some)
        counts = np.abs(counts)
    wrong = (counts > limits) | (counts < 0)
    if wrong.any():
        lanes.fail(wrong, "an array has more elements than there are bytes")
        counts = np.where(wrong, 0, counts)
    return counts


def _offsets(counts: Numbers) -> Any:
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _array(items: Node, kind: Any) -> Node:
    def read(lanes: Lanes) -> Any:
        found, counts = _elements(lanes, items)
        if found is None:
            found = pa.array([], kind.value_type)
        return pa.ListArray.from_arrays(_offsets(counts), found, type=kind)

    return read


def _map(values: Node, kind: Any) -> Node:
    key = _scalar(AvroType("string"), pa.string(), AvroType("string"))
    entry = pa.struct([pa.field("key", pa.string()), pa.field("value", kind.item_type)])

    def pair(lanes: Lanes) -> Any:
        names = key(lanes)
        if names.null_count:
            names = names.fill_null("")  # of rows that are bad
        return pa.StructArray.from_arrays([names, values(lanes)], fields=list(entry))

    def read(lanes: Lanes) -> Any:
        found, counts = _elements(lanes, pair)
        if found is None:
            found = pa.array([], entry)
        return pa.MapArray.from_arrays(_offsets(counts), found.field(0), found.field(1), type=kind)

    return read


def _enum(writer: EnumType, wanted: EnumType) -> Node:
    known = {*wanted.symbols}
    symbols = pa.array(
        [symbol if symbol in known else wanted.default for symbol in writer.symbols], pa.string()
    )

    def read(lanes: Lanes) -> Any:
        numbers = lanes.zigzags()
        wrong = (numbers < 0) | (numbers >= len(symbols))
        if wrong.any():
            lanes.fail(wrong, "an enum has no such symbol")
        return symbols.take(pa.array(numbers, mask=wrong))

    return read


# --- scalars


def _scalar(writer: AvroType, kind: Any, wanted: AvroType) -> Node:
    if writer.kind == "null":
        return lambda lanes: pa.nulls(len(lanes), kind)
    if writer.kind == "boolean":
        return lambda lanes: pa.array(lanes.fixed(1)[:, 0] != 0)
    if writer.kind in ("int", "long"):
        return _whole(kind, wanted, 31 if writer.kind == "int" else 63)
    if writer.kind in ("float", "double"):
        dtype, size = (np.float32, 4) if writer.kind == "float" else (np.float64, 8)
        return lambda lanes: pa.array(lanes.fixed(size).copy().view(dtype)[:, 0]).cast(kind)
    if pa.types.is_decimal(kind):
        return _decimal(writer, kind)
    if isinstance(writer, FixedType):
        size = writer.size
        return lambda lanes: lanes.binaries(*lanes.spans(np.full(len(lanes), size, np.int64)))
    if pa.types.is_string(kind):
        return lambda lanes: lanes.texts(lanes.binaries(*lanes.spans(lanes.zigzags())))
    return lambda lanes: lanes.binaries(*lanes.spans(lanes.zigzags()))


def _whole(kind: Any, wanted: AvroType, bits: int) -> Node:
    is_millis = wanted.logical.endswith("timestamp-millis") and pa.types.is_timestamp(kind)

    def read(lanes: Lanes) -> Any:
        values = lanes.zigzags()
        if bits == 31 and len(values) and (wrong := (values >> 31 != values >> 63)).any():
            lanes.fail(wrong, "a number is too large for an int")
            values = np.where(wrong, 0, values)
        if is_millis:
            wrong = np.abs(values) > _MILLIS_MAX
            if wrong.any():
                lanes.fail(wrong, "a timestamp is too far away")
                values = np.where(wrong, 0, values)
            values = values * 1000
        if pa.types.is_date(kind) or pa.types.is_int32(kind):
            return pa.array(values.astype(np.int32)).view(kind)
        if pa.types.is_floating(kind):
            return pa.array(values.astype(np.float32 if pa.types.is_float32(kind) else np.float64))
        return pa.array(values).view(kind)

    return read


def _decimal(writer: AvroType, kind: Any) -> Node:
    """Two's complement, the highest byte first, of any length; Arrow has 16 bytes, the lowest first."""

    def read(lanes: Lanes) -> Any:
        if isinstance(writer, FixedType):
            begin, lengths = lanes.spans(np.full(len(lanes), writer.size, np.int64))
        else:
            begin, lengths = lanes.spans(lanes.zigzags())
        wrong = lengths > 16
        if wrong.any():
            lanes.fail(wrong, "a decimal has more than 16 bytes")
            lengths = np.where(wrong, 0, lengths)
        data = lanes.messages.data
        negative = (lengths > 0) & (data[begin] >= 0x80)
        table = np.where(negative[:, None], np.uint8(0xFF), np.zeros((1, 16), np.uint8))
        for number in range(int(lengths.max()) if len(lengths) else 0):
            has = number < lengths
            table[has, number] = data[(begin + lengths - 1 - number)[has]]
        found = pa.Array.from_buffers(kind, len(lanes), [None, pa.py_buffer(np.ascontiguousarray(table))])
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            return _with_nulls(lanes, found)
        return found

    return read


def _with_nulls(lanes: Lanes, found: Any) -> Any:
    """Without those that have more digits than the type."""
    wrong = np.zeros(len(found), bool)
    for number in range(len(found)):
        try:
            found.slice(number, 1).validate(full=True)
        except pa.ArrowInvalid:
            wrong[number] = True
    lanes.fail(wrong, "a decimal has more digits than its type")
    return found.take(pa.array(np.arange(len(found)), mask=wrong))
