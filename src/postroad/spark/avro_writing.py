"""Arrow → Avro messages, a column at a time: the other direction of `avro_reading`.

Each type of the schema makes of its array the bytes of every row, as one run of bytes and the length of each
row's part (`Ragged`). A record's fields are woven together row by row at the end, once for each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
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
from postroad.spark.lanes import VARINT_BYTES_MAX, Numbers

DECIMAL_BYTES: Final = 16  # of Arrow's


class Ragged(NamedTuple):
    """The bytes of all rows, one after the other, and how many each has."""

    data: npt.NDArray[np.uint8]
    lengths: Numbers


def write(type_: AvroType, values: Any) -> Ragged:
    """Values of the schema's Arrow type (`avro_types`). Raises InvalidRecord for what it doesn't allow."""
    if not len(values):
        return _nothing(0)
    if isinstance(type_, UnionType):
        return _union(type_, values)
    if type_.kind == "null":
        return _nothing(len(values))
    if values.null_count:
        raise InvalidRecord(
            f"A value is null, and the Avro schema does not allow it for {branch_name(type_)}."
        )
    if isinstance(type_, RecordType):
        fields = values.flatten()
        return _woven([write(field.type, fields[at]) for at, field in enumerate(type_.fields)], len(values))
    if isinstance(type_, ArrayType):
        return _elements(write(type_.items, values.flatten()), _counts(values))
    if isinstance(type_, MapType):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        keys, items = values.keys.slice(first, last - first), values.items.slice(first, last - first)
        pairs = _woven([_texts(keys), write(type_.values, items)], len(keys))
        return _elements(pairs, _counts(values))
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
    return _woven([_numbers(numbers), _scattered(parts, len(values))], len(values))


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


def _scattered(parts: Sequence[tuple[Numbers, Ragged]], rows: int) -> Ragged:
    """Parts of some rows each, in the order of the rows."""
    lengths = np.zeros(rows, np.int64)
    for which, ragged in parts:
        lengths[which] = ragged.lengths
    begin = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for which, ragged in parts:
        _put(data, begin[which], ragged)
    return Ragged(data, lengths)


def _woven(parts: Sequence[Ragged], rows: int) -> Ragged:
    """Row by row what each of the parts has of it."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.zeros(rows, np.int64)
    for part in parts:
        lengths += part.lengths
    at = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for part in parts:
        _put(data, at, part)
        at = at + part.lengths
    return Ragged(data, lengths)


def _put(data: npt.NDArray[np.uint8], begin: Numbers, part: Ragged) -> None:
    """Each row's bytes to where they begin."""
    if not len(part.data):
        return
    shift = begin - (np.cumsum(part.lengths) - part.lengths)
    data[np.repeat(shift, part.lengths) + np.arange(len(part.data))] = part.data


# --- lists


def _counts(values: Any) -> Numbers:
    counts: Numbers = np.diff(values.offsets.to_numpy()).astype(np.int64)
    return counts


def _elements(elements: Ragged, counts: Numbers) -> Ragged:
    """One block with all elements, and the end."""
    ends = np.concatenate([[0], np.cumsum(elements.lengths)])
    upto = np.concatenate([[0], np.cumsum(counts)])
    lengths = ends[upto[1:]] - ends[upto[:-1]]
    some = counts > 0
    heads = _numbers(counts)  # of an empty list the end is all
    block = Ragged(elements.data, lengths)
    end = Ragged(np.zeros(int(some.sum()), np.uint8), some.astype(np.int64))
    return _woven([heads, block, end], len(counts))


# --- scalars


def _nothing(rows: int) -> Ragged:
    return Ragged(np.empty(0, np.uint8), np.zeros(rows, np.int64))


def _numbers(values: Numbers) -> Ragged:
    """Zigzag varints."""
    left = ((values << 1) ^ (values >> 63)).view(np.uint64)
    table = np.zeros((len(values), VARINT_BYTES_MAX), np.uint8)
    lengths = np.ones(len(values), np.int64)
    for at in range(VARINT_BYTES_MAX):
        table[:, at] = (left & np.uint64(0x7F)).astype(np.uint8)
        left = left >> np.uint64(7)
        more = left != 0
        if not more.any():
            break
        table[more, at] |= 0x80
        lengths += more
    return Ragged(table[np.arange(VARINT_BYTES_MAX) < lengths[:, None]], lengths)


def _scalar(type_: AvroType, values: Any) -> Ragged:
    if type_.kind == "boolean":
        return _table(values.to_numpy(zero_copy_only=False).astype(np.uint8)[:, None])
    if type_.kind in ("int", "long"):
        return _numbers(_whole(type_, values))
    if type_.kind in ("float", "double"):
        numbers = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
        return _table(numbers.view(np.uint8).reshape(len(numbers), -1))
    if isinstance(type_, EnumType):
        numbers = pc.index_in(values, pa.array(type_.symbols, pa.string()))
        if numbers.null_count:
            raise InvalidRecord(f"A value is no symbol of the Avro enum {type_.full_name}.")
        return _numbers(numbers.to_numpy().astype(np.int64))
    if pa.types.is_decimal(values.type):
        return _decimals(type_, values)
    if isinstance(type_, FixedType):
        found = _bytes(values)
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


def _table(table: npt.NDArray[np.uint8]) -> Ragged:
    return Ragged(table.reshape(-1), np.full(len(table), table.shape[1], np.int64))


def _bytes(values: Any) -> Ragged:
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    whole = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Ragged(whole[offsets[0] : offsets[-1]], np.diff(offsets).astype(np.int64))


def _texts(values: Any) -> Ragged:
    if not len(values):
        return _nothing(0)
    found = _bytes(values)
    return _woven([_numbers(found.lengths), found], len(values))


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
        return _table(np.ascontiguousarray(wide[:, wide.shape[1] - type_.size :]))
    found = Ragged(table[np.arange(DECIMAL_BYTES) >= spare[:, None]], lengths)
    return _woven([_numbers(lengths), found], len(table))
