"""Maps in JSON, for Arrow's parser, which has none: an object becomes a list of pairs, and that a map again.

Only the objects that are maps are written anew; all else of a text stays as it is, byte for byte, and it is
the parser that says what is good. What it would not notice is looked for here: an array in a map's place.
Where a key is there twice its last value counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Write = Callable[[Any], bytes]
"""Of a text, or of msgspec's view of a part of one, the text with lists of pairs in place of maps."""

_NOTHING: Final = msgspec.Raw(b"")
_PAIRS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_encode: Final = msgspec.json.Encoder().encode
_TYPES: Final = {ord("["): "array", ord('"'): "string", ord("t"): "boolean", ord("f"): "boolean"}


@lru_cache(maxsize=64)
def has_maps(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return any(has_maps(field.type) for field in kind)
    return pa.types.is_map(kind) or (pa.types.is_list(kind) and has_maps(kind.value_type))


def listed(kind: Any) -> Any:
    """The type with lists of pairs in place of maps."""
    if not has_maps(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(listed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(listed(kind.value_type)))
    return pa.list_(pa.struct([("key", pa.string()), ("value", listed(kind.item_type))]))


def rewritten(values: Any, kind: Any) -> Any:
    """Binaries with lists of pairs in place of maps. Raises ArrowInvalid."""
    write = _writer(kind)
    return pa.array(
        [None if each is None else _text(write, each) for each in values.to_pylist()], pa.binary()
    )


def text(value: bytes, kind: Any) -> bytes:
    """The same of one value. Raises ArrowInvalid."""
    return _text(_writer(kind), value)


def as_maps(values: Any, kind: Any) -> Any:
    """An array of the listed type as one of the type itself."""
    if not has_maps(kind):
        return values
    mask = values.is_null()
    if pa.types.is_struct(kind):
        arrays = [as_maps(each, field.type) for each, field in zip(values.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)
    counts = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    inner = values.flatten()
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(offsets, as_maps(inner, kind.value_type), type=kind, mask=mask)
    keys, items = inner.flatten()
    return pa.MapArray.from_arrays(offsets, keys, as_maps(items, kind.item_type), type=kind, mask=mask)


def _text(write: Write, value: bytes) -> bytes:
    try:
        return write(value)
    except RecursionError:
        raise pa.ArrowInvalid("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"it is not UTF8: {error}") from None
    except msgspec.DecodeError as error:
        raise pa.ArrowInvalid(str(error)) from None


# --- one value: a function for each type, made once


@lru_cache(maxsize=16)
def _writer(kind: Any, path: str = "") -> Write:
    """`path` is as Arrow's parser has it. What is not of the type is left for the parser to say so, but for
    maps, whose lists it would take."""
    if pa.types.is_struct(kind):
        return _of_struct(kind, path)
    return _of_map(kind, path) if pa.types.is_map(kind) else _of_list(kind, path)


def _of_struct(kind: Any, path: str) -> Write:
    fields = [(number, field) for number, field in enumerate(kind) if has_maps(field.type)]
    names = {f"f{number}": field.name for number, field in fields}
    made = msgspec.defstruct("Maps", [(name, msgspec.Raw, _NOTHING) for name in names], rename=names)
    decode = msgspec.json.Decoder(made).decode
    writers = [
        (f"f{number}", _writer(field.type, f"{path}/{field.name}".lstrip("/"))) for number, field in fields
    ]

    def write(raw: Any) -> bytes:
        try:
            found = decode(raw)
        except msgspec.ValidationError:
            return bytes(raw)
        views = [(getattr(found, name), of_field) for name, of_field in writers]
        return _spliced(raw, [each for each in views if each[0] is not _NOTHING])

    return write


def _of_list(kind: Any, path: str) -> Write:
    of_element = _writer(kind.value_type, f"{path}/[]")

    def write(raw: Any) -> bytes:
        try:
            return _spliced(raw, [(each, of_element) for each in _ELEMENTS.decode(raw)])
        except msgspec.ValidationError:
            return bytes(raw)

    return write


def _of_map(kind: Any, path: str) -> Write:
    of_item = _writer(kind.item_type, f"{path}/[]/value") if has_maps(kind.item_type) else bytes

    def write(raw: Any) -> bytes:
        try:
            pairs = _PAIRS.decode(raw)
        except msgspec.ValidationError:
            whole = bytes(raw)
            if whole == b"null":
                return whole
            kind_there = _TYPES.get(whole[0], "number")
            raise pa.ArrowInvalid(f"field {path} is of type {kind_there}, not object") from None
        texts = [b'{"key":%b,"value":%b}' % (_encode(key), of_item(value)) for key, value in pairs.items()]
        return b"[%b]" % b",".join(texts)

    return write


def _spliced(raw: Any, views: Sequence[tuple[Any, Write]]) -> bytes:
    """The text with each view of a part of it written anew."""
    whole = bytes(raw)
    base = pa.py_buffer(raw).address
    parts = [(pa.py_buffer(each), each, write) for each, write in views]
    if len(parts) > 1:
        parts.sort(key=lambda part: part[0].address)
    found, done = [], 0
    for buffer, each, write in parts:
        begin = buffer.address - base
        found += [whole[done:begin], write(each)]
        done = begin + buffer.size
    return b"".join([*found, whole[done:]])
