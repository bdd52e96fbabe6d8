"""Arrow → Avro messages, a column at a time: the other direction of `avro_reading`.

Each type of the schema makes of its array the bytes of every row (`ragged`). A record's fields are woven
together row by row at the end, once for each record.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postroad.errors import InvalidRecord
from postroad.schemas.avro import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
    branch_name,
)
from postroad.spark import avro_types
from postroad.spark.lanes import Numbers
from postroad.spark.ragged import Ragged, binaries, counts, fixed, nothing, scattered, woven, zigzags

DECIMAL_BYTES: Final = 16  # of Arrow's


def write(type_: AvroType, values: Any) -> Ragged:
    """Values of the schema's Arrow type (`avro_types`). Raises InvalidRecord for what it doesn't allow."""
    if not len(values):
        return nothing(0)
    if isinstance(type_, UnionType):
        return _union(type_, values)
    if type_.kind == "null":
        return nothing(len(values))
    if values.null_count:
        raise InvalidRecord(
            f"A value is null, and the Avro schema does not allow it for {branch_name(type_)}."
        )
    if isinstance(type_, RecordType):
        fields = values.flatten()
        return woven([write(field.type, fields[at]) for at, field in enumerate(type_.fields)], len(values))
    if isinstance(type_, ArrayType):
        return _elements(write(type_.items, values.flatten()), counts(values))
    if isinstance(type_, MapType):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        keys, items = values.keys.slice(first, last - first), values.items.slice(first, last - first)
        pairs = woven([_texts(keys), write(type_.values, items)], len(keys))
        return _elements(pairs, counts(values))
    return _scalar(type_, values)


# --- unions


def _union(type_: UnionType, values: Any) -> Ragged:
    branches = _branches(type_, values)
    numbers = np.full(len(values), -1, np.int64)
    parts: list[tuple[Numbers, Ragged]] = []
    for number, (which, array) in branches.items():
        numbers[which] = number
        parts.append((which, write(type_.branches[number], array)))
    if (numbers < 0).any():
        kinds = ", ".join(map(branch_name, type_.branches))
        raise InvalidRecord(f"A value is none of the types of the Avro schema's union of {kinds}.")
    return woven([zigzags(numbers), scattered(parts, len(values))], len(values))


def _branches(type_: UnionType, values: Any) -> dict[int, tuple[Numbers, Any]]:
    """The rows of each branch, and their values."""
    kinds = [each.kind for each in type_.branches]
    others = [number for number, kind in enumerate(kinds) if kind != "null"]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    found: dict[int, tuple[Numbers, Any]] = {}
    if "null" in kinds and not valid.all():
        found[kinds.index("null")] = np.flatnonzero(~valid), pa.nulls(int((~valid).sum()))
    if wide := avro_types.widened(type_):
        others = [number for number in others if kinds[number] == wide]
    if len(others) == 1:
        found[others[0]] = np.flatnonzero(valid), values.filter(pa.array(valid))
        return found
    for member, number in enumerate(others):
        array = values.field(member)
        has = array.is_valid().to_numpy(zero_copy_only=False) & valid
        found[number] = np.flatnonzero(has), array.filter(pa.array(has))
    return found


# --- lists


def _elements(elements: Ragged, counts: Numbers) -> Ragged:
    """One block with all elements, and the end."""
    ends = np.concatenate([[0], np.cumsum(elements.lengths)])
    upto = np.concatenate([[0], np.cumsum(counts)])
    lengths = ends[upto[1:]] - ends[upto[:-1]]
    some = counts > 0
    heads = zigzags(counts)  # of an empty list the end is all
    block = Ragged(elements.data, lengths)
    end = Ragged(np.zeros(int(some.sum()), np.uint8), some.astype(np.int64))
    return woven([heads, block, end], len(counts))


# --- scalars


def _scalar(type_: AvroType, values: Any) -> Ragged:
    if type_.kind == "boolean":
        return fixed(values.to_numpy(zero_copy_only=False).astype(np.uint8)[:, None])
    if type_.kind in ("int", "long"):
        return zigzags(_whole(type_, values))
    if type_.kind in ("float", "double"):
        numbers = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
        return fixed(numbers.view(np.uint8).reshape(len(numbers), -1))
    if isinstance(type_, EnumType):
        numbers = pc.index_in(values, pa.array(type_.symbols, pa.string()))
        if numbers.null_count:
            raise InvalidRecord(f"A value is no symbol of the Avro enum {type_.full_name}.")
        return zigzags(numbers.to_numpy().astype(np.int64))
    if pa.types.is_decimal(values.type):
        return _decimals(type_, values)
    if isinstance(type_, FixedType):
        found = binaries(values)
        if (found.lengths != type_.size).any():
            raise InvalidRecord(f"A value does not have the {type_.size} bytes of {type_.full_name}.")
        return found
    return _texts(values)


def _whole(type_: AvroType, values: Any) -> Numbers:
    kind = values.type
    if pa.types.is_date(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    numbers: Numbers = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers // 1000 if type_.logical.endswith("timestamp-millis") else numbers


def _texts(values: Any) -> Ragged:
    if not len(values):
        return nothing(0)
    found = binaries(values)
    return woven([zigzags(found.lengths), found], len(values))


def _decimals(type_: AvroType, values: Any) -> Ragged:
    """Two's complement, the highest byte first, and no byte more than it takes."""
    data = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, DECIMAL_BYTES)
    table = data[values.offset : values.offset + len(values), ::-1]
    sign = np.where(table[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    spare = np.zeros(len(table), np.int64)  # bytes that only repeat the sign
    going = np.ones(len(table), bool)
    for at in range(DECIMAL_BYTES - 1):
        going &= (table[:, at] == sign[:, 0]) & ((table[:, at + 1] ^ sign[:, 0]) < 0x80)
        spare += going
    lengths = DECIMAL_BYTES - spare
    if isinstance(type_, FixedType):
        if (lengths > type_.size).any():
            raise InvalidRecord(f"A decimal does not fit into the {type_.size} bytes of {type_.full_name}.")
        wide = np.concatenate([np.repeat(sign, max(0, type_.size - DECIMAL_BYTES), axis=1), table], axis=1)
        return fixed(np.ascontiguousarray(wide[:, wide.shape[1] - type_.size :]))
    found = Ragged(table[np.arange(DECIMAL_BYTES) >= spare[:, None]], lengths)
    return woven([zigzags(lengths), found], len(table))
