"""The generated codec against kio: the same bytes and the same values, in every version of every API."""

from __future__ import annotations

import importlib
import io
from dataclasses import fields
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.serial import entity_writer
from kio.serial._introspect import classify_field

from tools.generator import schema
from tools.samples import module_of, samples

SAMPLES = 12
APIS = schema.load_all()
MESSAGES = [
    pytest.param(api, direction, version, id=f"{api.module}-{direction}-v{version}")
    for api in APIS
    for direction in api.messages
    for version in api.versions
]


class _Time:
    """Stands in for timedelta and datetime, which can't hold all of an int64."""

    def __init__(self, milliseconds: int) -> None:
        self.seconds = Fraction(milliseconds, 1000)

    def total_seconds(self) -> Fraction:
        return self.seconds

    timestamp = total_seconds


def to_kio(kio_class: Any, message: Any) -> Any:
    """kio's entity with the message's values."""
    values = {}
    for field in fields(kio_class):
        kind = field.metadata.get("kafka_type", "struct")
        is_time = kind.startswith(("timedelta", "datetime"))
        value = getattr(message, f"{field.name}_ms" if is_time else field.name)
        shape = classify_field(field)
        if value is None and kind == "struct" and "tag" in field.metadata and not shape.is_array:
            value = field.default
        elif shape.is_array and value is not None:
            value = tuple(_dress(each, kind, shape.type_) for each in value)
        else:
            value = _dress(value, kind, shape.type_)
        values[field.name] = value
    return kio_class(**values)


def _dress(value: Any, kind: str, kio_class: Any) -> Any:
    if value is None:
        return None
    if kind == "struct":
        return to_kio(kio_class, value)
    if kind == "uuid":
        return UUID(bytes=value) if any(value) else None
    if kind == "error_code":
        return SimpleNamespace(value=value)
    return _Time(value) if kind.startswith(("timedelta", "datetime")) else value


def kio_bytes(api: schema.Api, direction: str, version: int, message: Any) -> bytes:
    kio_module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{direction}")
    kio_class = getattr(kio_module, type(message).__name__)
    out = io.BytesIO()
    entity_writer(kio_class)(out, to_kio(kio_class, message))
    return out.getvalue()


@pytest.mark.parametrize(("api", "direction", "version"), MESSAGES)
def test_bytes_and_values_are_those_of_kio(api: schema.Api, direction: str, version: int) -> None:
    module = module_of(api)
    suffix = "" if direction == "data" else f"_{direction}"
    encode, decode = getattr(module, f"encode{suffix}"), getattr(module, f"decode{suffix}")
    for message in samples(api, direction, version, SAMPLES):
        expected = kio_bytes(api, direction, version, message)
        assert encode(message, version) == expected
        assert decode(expected, version) == message
        assert decode(memoryview(expected + b"behind the message"), version) == message
