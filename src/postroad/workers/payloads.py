"""Payloads: Python values as bytes and back.

    bytes, bytearray, memoryview   as they are
    str                            UTF-8
    pydantic models                by the model (pydantic need not be installed)
    everything else                JSON by msgspec: Structs, dataclasses, TypedDicts, dict, list, numbers, …

Reading goes by the type that is asked for, and by nothing that the message says: a publisher can't choose
what is made of its bytes. A message without a payload, such as a tombstone, is None where the type is
`… | None`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from postroad.workers.errors import Undecodable

Decode = Callable[[bytes | None], Any]

_encode_json = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes | None:
    """The bytes of a message; None is a message without any. TypeError for what can't be written."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if _is_model(type(value)):
        text: str = value.model_dump_json()
        return text.encode()
    try:
        return _encode_json(value)
    except TypeError as error:
        raise TypeError(f"{type(value).__name__} can't be a message's payload: {error}") from None


def decoder(of: Any) -> Decode:
    """A function that reads a payload of this type; it raises Undecodable. `Any` is any JSON.

    TypeError if nothing can be read as the type.
    """
    if (rest := _without_none(of)) is not None:
        return _optional(decoder(rest), () if rest in (bytes, str) else (b"null",))
    if of is bytes:
        return _as_bytes
    if of is str:
        return _as_text
    if isinstance(of, type) and _is_model(of):
        return _model_decoder(of)
    try:
        decode_json = msgspec.json.Decoder(of).decode
    except TypeError as error:
        raise TypeError(f"{_name(of)} can't be read from a message: {error}") from None
    name = _name(of)

    def decode(payload: bytes | None) -> Any:
        try:
            return decode_json(payload)  # type: ignore[arg-type]
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError) as error:
            raise _undecodable(name, payload, error) from None

    return decode


def _without_none(of: Any) -> Any:
    """X of `X | None`; None for all other types."""
    if get_origin(of) not in (Union, UnionType) or NoneType not in get_args(of):
        return None
    return reduce(or_, (each for each in get_args(of) if each is not NoneType))


def _optional(decode: Decode, nothing: tuple[bytes, ...]) -> Decode:
    def decode_if_any(payload: bytes | None) -> Any:
        return None if payload is None or payload in nothing else decode(payload)

    return decode_if_any


def _as_bytes(payload: bytes | None) -> bytes:
    return b"" if payload is None else payload


def _as_text(payload: bytes | None) -> str:
    try:
        return b"".decode() if payload is None else str(payload, "utf-8")
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8: {error.reason} at byte {error.start}") from None


def _model_decoder(model: Any) -> Decode:
    def decode(payload: bytes | None) -> Any:
        try:
            return model.model_validate_json(payload or b"")
        except ValueError as error:  # pydantic's ValidationError is one
            raise _undecodable(model.__name__, payload, error) from None

    return decode


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_dump_json")


def _undecodable(name: str, payload: bytes | None, error: Exception) -> Undecodable:
    if payload is None:
        return Undecodable(f"no {name}: the message has no payload")
    return Undecodable(f"no {name}: {error}")


def _name(of: Any) -> str:
    return getattr(of, "__name__", None) or str(of)
