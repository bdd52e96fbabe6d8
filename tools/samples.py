"""Messages made up from the schemas, for the tests of the codec and for `tools.fuzz`.

A sample has only values that its version can hold. The first of each version are the corners (all
defaults, all null or empty, all largest), the rest are random but the same for the same seed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from random import Random
from types import ModuleType
from typing import Any

from tools.generator.schema import Api, Field, Struct

_INTEGER_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXTS = ("", "a", "topic-1", "größe ✓ 🚚", "x" * 126, "y" * 127, "é" * 200)
_BYTES = (b"", b"\0", bytes(range(256)), b"z" * 20_000)
_FLOATS = (0.0, -1.5, 1e300, float("inf"))

DEFAULTS, EMPTY, LARGEST, RANDOM = "defaults", "empty", "largest", "random"


def module_of(api: Api) -> ModuleType:
    return importlib.import_module(f"postroad.wire.messages.{api.module}")


def samples(api: Api, direction: str, version: int, count: int, seed: int = 0) -> Iterator[Any]:
    """`count` messages, the corners first."""
    random = Random(f"{api.module} {direction} {version} {seed}")
    sampler = Sampler(module_of(api), version, random)
    for style in [DEFAULTS, EMPTY, LARGEST][:count]:
        yield sampler.message(api.messages[direction], style)
    for _ in range(count - 3):
        yield sampler.message(api.messages[direction], RANDOM)


class Sampler:
    """Makes messages of one module and version."""

    def __init__(self, module: ModuleType, version: int, random: Random) -> None:
        self.module = module
        self.version = version
        self.random = random

    def message(self, struct: Struct, style: str, depth: int = 0) -> Any:
        message = getattr(self.module, struct.name)()
        for field in struct.fields:
            if self.version in field.versions:
                setattr(message, field.name, self._field(field, style, depth, getattr(message, field.name)))
        return message

    def _field(self, field: Field, style: str, depth: int, default: Any) -> Any:
        is_nullable = self.version in field.nullable
        if style == DEFAULTS or (style == RANDOM and field.is_tagged and self.random.random() < 0.4):
            return default if default is not None or is_nullable or field.is_tagged else self._zero(field)
        if is_nullable and (style == EMPTY or (style == RANDOM and self.random.random() < 0.2)):
            return None
        if not field.is_array:
            return self.value(field, style, depth)
        return [self.value(field, style, depth + 1) for _ in range(self._array_length(field, style, depth))]

    def _zero(self, field: Field) -> Any:
        return [] if field.is_array else {"string": "", "bytes": b"", "records": b""}[field.type]

    def _array_length(self, field: Field, style: str, depth: int) -> int:
        if style != RANDOM:
            return 0 if style == EMPTY else 2
        longest = 1 if depth > 1 else 3
        if field.struct is None and self.random.random() < 0.1:
            return self.random.choice((16, 17, 126, 127, 200))  # around where the encodings change
        return self.random.randint(0, longest)

    def value(self, field: Field, style: str, depth: int = 0) -> Any:
        if field.struct is not None:
            made = self.message(field.struct, style, depth)
            return None if field.is_tagged and not field.is_array and made == type(made)() else made
        return self._plain(field.type, style)

    def _plain(self, kind: str, style: str) -> Any:
        if kind in _INTEGER_BITS:
            return self._integer(-(1 << _INTEGER_BITS[kind]), (1 << _INTEGER_BITS[kind]) - 1, style)
        if kind == "uint16":
            return self._integer(0, 65_535, style)
        choices: dict[str, tuple[Any, ...]] = {
            "bool": (False, True),
            "float64": _FLOATS,
            "string": _TEXTS,
            "bytes": _BYTES,
            "records": _BYTES,
            "uuid": (bytes(16), b"\xff" * 16, self.random.randbytes(16)),
        }
        index = {EMPTY: 0, LARGEST: -1}.get(style)
        return self.random.choice(choices[kind]) if index is None else choices[kind][index]

    def _integer(self, lowest: int, highest: int, style: str) -> int:
        if style == EMPTY:
            return 0
        if style == LARGEST:
            return highest
        return self.random.choice(
            (0, 1, -1 if lowest else 1, lowest, highest, self.random.randint(lowest, highest))
        )
