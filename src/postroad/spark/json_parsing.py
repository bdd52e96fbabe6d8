"""An array of JSON texts → an array of structs, and which texts are bad.

Arrow's JSON parser reads all values of a batch at once. Each is wrapped as `{"v": [[VALUE]], "i": NUMBER}` on
a line of its own: a value that is cut short, or two in one, can't shift those after it, and the number proves
it. A text that closes both brackets and opens others would pass; it is not JSON by itself, so the few texts
that may do so are looked at alone, too.

Arrow says that something is bad in a batch, and not reliably what. So a batch that it can't read is looked
through by a decoder of msgspec for the same fields, which is quick at single values, and Arrow is asked about
each of those that it doesn't take. The rest is read as a whole again. One parser decides what is good,
whatever stands beside it: where the other one is wrong about a good value that costs a call, and where it is
wrong about a bad one the rest is halved until that stands alone.

Maps are lists to that parser (`json_maps`).

A null value stays null, as does JSON's `null`; fields that the schema doesn't name are ignored, fields that a
value doesn't have are null. A bad row is one that isn't a JSON object, or has a field of another type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from postroad.errors import ConfigurationError
from postroad.spark import json_maps

FEW: Final = 8  # so many rows are tried one by one
REASON_CHARS_MAX: Final = 300

_NOT_ONE: Final = "it is not one JSON value"
_CLOSING: Final = r"\]\s*\]\s*,"
_ALONE: Final = msgspec.json.Decoder(msgspec.Raw)  # finds where a value ends, and makes no object of it


def check_kind(kind: Any) -> None:
    """ConfigurationError if there is no way to read this type from JSON."""
    if not pa.types.is_struct(kind):
        raise ConfigurationError("valueFormat=json: the column value must be a struct of the values' fields.")
    _check_keys(kind)
    try:
        _parse(pa.array([b"{}"], pa.binary()), kind)
    except pa.ArrowNotImplementedError as error:
        raise ConfigurationError(f"valueFormat=json: {error}: use another type in the schema.") from None


def _check_keys(kind: Any) -> None:
    if pa.types.is_map(kind) and not pa.types.is_string(kind.key_type):
        raise ConfigurationError(f"valueFormat=json: the keys of a map are strings, not {kind.key_type}.")
    for number in range(kind.num_fields):
        _check_keys(kind.field(number).type)


def parse(values: Any, kind: Any) -> tuple[Any, dict[int, str]]:
    """An array of binaries as one of structs, and the reason for each row that can't be read (null there)."""
    with suppress(pa.ArrowInvalid):
        return _parse(values, kind), {}
    bad = {row: reason for row in _suspects(values, kind) if (reason := _why_bad(values[row], kind))}
    good = np.setdiff1d(np.arange(len(values)), np.fromiter(bad, np.int64, len(bad)))
    missed: dict[int, str] = {}
    pieces = list(_pieces(values.take(pa.array(good)) if bad else values, kind, 0, missed))
    bad |= {int(good[row]): reason for row, reason in missed.items()}
    return _spread(pa.concat_arrays(pieces), good, len(values)), dict(sorted(bad.items()))


def _spread(found: Any, rows: Any, count: int) -> Any:
    """Null in all rows but these."""
    if len(found) == count:
        return found
    at = np.full(count, -1, np.int64)
    at[rows] = np.arange(len(rows))
    return found.take(pa.array(at, mask=at < 0))


def _suspects(values: Any, kind: Any) -> Iterator[int]:
    """Rows that are bad, most likely; others may be."""
    decode = _decoder(kind).decode
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            decode(value)
            if not value.isascii():
                value.decode()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            yield row


def _why_bad(value: Any, kind: Any) -> str | None:
    """None if it is good."""
    try:
        data = value.as_py()
        text = (json_maps.text(data, kind) if json_maps.has_maps(kind) else data).decode()
        if re.search(_CLOSING, text):
            _check_alone([text])
        _read(f'{{"v":[[{text}]],"i":0}}\n'.encode(), 1, kind)
    except UnicodeDecodeError as error:
        return f"it is not UTF8: {error}"[:REASON_CHARS_MAX]
    except pa.ArrowInvalid as error:
        return _reason(str(error))
    return None


@lru_cache(maxsize=16)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_as_python(kind))


_TIME: Final = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^\d{4}-\d\d-\d\d([ T]\d\d(:?\d\d(:?\d\d([.,]\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
    ),
]
_DECIMAL: Final = Annotated[str, msgspec.Meta(pattern=r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")]


def _as_python(kind: Any) -> Any:
    """About what Arrow takes for this type, as msgspec has it."""
    types = pa.types
    if types.is_struct(kind):
        names = {f"f{number}": field.name for number, field in enumerate(kind)}
        fields = [(name, _as_python(field.type), None) for name, field in zip(names, kind, strict=True)]
        return msgspec.defstruct("Fields", fields, rename=names) | None
    if types.is_list(kind):
        return list[_as_python(kind.value_type)] | None  # type: ignore[misc]
    if types.is_map(kind):
        return dict[str, _as_python(kind.item_type)] | None  # type: ignore[misc]
    if types.is_signed_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-most, le=most - 1)] | None
    if types.is_date(kind) or types.is_timestamp(kind):
        return _TIME | None
    if types.is_decimal(kind):
        return _DECIMAL | int | float | None
    for is_it, python in ((types.is_floating, float), (types.is_boolean, bool), (types.is_string, str)):
        if is_it(kind):
            return python | None
    return Any


def _pieces(values: Any, kind: Any, first: int, bad: dict[int, str]) -> Iterator[Any]:
    """What is good of `values`, which begin at row `first`; bad ones are noted, and null."""
    try:
        yield _parse(values, kind)
        return
    except pa.ArrowInvalid as error:
        if len(values) == 1:
            bad[first] = _reason(str(error))
            yield pa.nulls(1, kind)
            return
    step = 1 if len(values) <= FEW else (len(values) + 1) // 2
    for at in range(0, len(values), step):
        yield from _pieces(values.slice(at, step), kind, first + at, bad)


def _parse(values: Any, kind: Any) -> Any:
    """All of them, or ArrowInvalid."""
    if not len(values):
        return pa.array([], kind)
    if json_maps.has_maps(kind):
        values = json_maps.rewritten(values, kind)
    texts = pc.fill_null(values.cast(pa.string()), "null")  # the cast finds what isn't UTF-8
    numbers = pa.array(range(len(values)), pa.int64()).cast(pa.string())
    _check_alone(texts.filter(pc.match_substring_regex(texts, _CLOSING)).to_pylist())
    lines = pc.binary_join_element_wise('{"v":[[', texts, ']],"i":', numbers, "}\n", "")
    return _read(lines.buffers()[2], len(values), kind)


def _read(data: Any, rows: int, kind: Any) -> Any:
    """The values of these lines; ArrowInvalid unless each has one."""
    found = pj.open_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=_options(kind),
    ).read_all()
    found = found.combine_chunks()
    if len(found) != rows or not found.column("i").chunk(0).equals(pa.array(range(rows), pa.int64())):
        raise pa.ArrowInvalid(_NOT_ONE)
    values = _only(_only(found.column("v").chunk(0))).cast(json_maps.listed(kind))
    values = json_maps.as_maps(values, kind)
    if "decimal" in str(kind):
        values.validate(full=True)  # the parser takes numbers that have more digits than the type
    return values


@lru_cache(maxsize=16)
def _options(kind: Any) -> Any:
    schema = pa.schema([("v", pa.list_(pa.list_(_readable(json_maps.listed(kind))))), ("i", pa.int64())])
    return pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")


def _only(lists: Any) -> Any:
    """The element of each list, which has one."""
    if lists.null_count or pc.any(pc.not_equal(pc.list_value_length(lists), 1)).as_py():
        raise pa.ArrowInvalid(_NOT_ONE)
    return lists.flatten()


def _check_alone(texts: list[str]) -> None:
    for text in texts:
        try:
            _ALONE.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise pa.ArrowInvalid(_NOT_ONE) from None


def _readable(kind: Any) -> Any:
    """The type as the parser knows it: it takes dates for times."""
    if pa.types.is_date(kind):
        return pa.timestamp("s")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    return kind


_COLUMN: Final = re.compile(r"Column\(/v/\[\]/\[\]/?([^)]*)\)")
_CHANGED: Final = re.compile(r"changed from (\w+) to (\w+)")


def _reason(error: str) -> str:
    """The parser's words as they are about one value, not about a table of lines."""
    if "Column(/v/[])" in error:  # it has closed a bracket of ours
        return _NOT_ONE
    text = error.removeprefix("JSON parse error: ").removesuffix(" in row 0").rstrip(".")
    text = _COLUMN.sub(lambda match: f"field {match[1]}" if match[1] else "it", text)
    text = _CHANGED.sub(r"is of type \2, not \1", text)
    return text[:REASON_CHARS_MAX]
