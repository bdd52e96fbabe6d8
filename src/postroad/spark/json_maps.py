"""Maps in JSON, for Arrow's parser, which has none: an object becomes a list of pairs, and that a map again.

Only the objects that are maps are written anew; all else of a text stays as it is, byte for byte, and it is
the parser that says what is good. What it would not notice is looked for here: an array in a map's place.
Where a key is there twice its last value counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NOTHING: Final = msgspec.Raw(b"")
_PAIRS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
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
    return pa.array([None if each is None else text(each, kind) for each in values.to_pylist()], pa.binary())


def text(value: bytes, kind: Any) -> bytes:
    """The same of one value. Raises ArrowInvalid."""
    try:
        return _text(value, kind, "")
    except RecursionError:
        raise pa.ArrowInvalid("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"it is not UTF8: {error}") from None
    except msgspec.DecodeError as error:
        raise pa.ArrowInvalid(str(error)) from None


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


def _text(raw: Any, kind: Any, path: str) -> bytes:
    """`raw`: bytes, or msgspec's view of some."""
    whole = bytes(raw)
    try:
        if pa.types.is_map(kind):
            return _pairs(raw, kind, path)
        parts = [*_parts(raw, kind, path)]
    except msgspec.ValidationError:
        if pa.types.is_map(kind) and whole != b"null":
            raise pa.ArrowInvalid(
                f"field {path} is of type {_TYPES.get(whole[0], 'number')}, not object"
            ) from None
        return whole  # it is not what the type says, and the parser will say so
    base = pa.py_buffer(raw).address
    found, done = [], 0
    for each, inner, at in parts:
        begin = pa.py_buffer(each).address - base
        found += [whole[done:begin], _text(each, inner, at)]
        done = begin + len(memoryview(each))
    return b"".join([*found, whole[done:]])


def _pairs(raw: Any, kind: Any, path: str) -> bytes:
    inner = kind.item_type
    pairs = []
    for key, value in _PAIRS.decode(raw).items():
        content = _text(value, inner, f"{path}/{key}") if has_maps(inner) else bytes(value)
        pairs.append(b'{"key":%b,"value":%b}' % (msgspec.json.encode(key), content))
    return b"[%b]" % b",".join(pairs)


def _parts(raw: Any, kind: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """The views in which there are maps, in the order of the text, with their types and paths."""
    if pa.types.is_list(kind):
        for each in _ELEMENTS.decode(raw):
            yield each, kind.value_type, f"{path}/[]"
        return
    found = _decoder(kind).decode(raw)
    views = [(getattr(found, f"f{number}"), field) for number, field in _with_maps(kind)]
    views = [(each, field) for each, field in views if len(memoryview(each))]
    for each, field in sorted(views, key=lambda view: pa.py_buffer(view[0]).address):
        yield each, field.type, f"{path}/{field.name}".lstrip("/")


def _with_maps(kind: Any) -> list[tuple[int, Any]]:
    return [(number, field) for number, field in enumerate(kind) if has_maps(field.type)]


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    fields = [(f"f{number}", msgspec.Raw, _NOTHING) for number, _ in _with_maps(kind)]
    names = {f"f{number}": field.name for number, field in _with_maps(kind)}
    return msgspec.json.Decoder(msgspec.defstruct("Maps", fields, rename=names))
