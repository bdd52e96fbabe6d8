"""How much memory the most wasteful bodies take: arrays of the smallest elements there are."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest

from tools.fuzz import BYTES_FOR_A_BODY_MAX, Found, Fuzzer, Target
from tools.generator.schema import Api, Field, Struct, load_all
from tools.samples import EMPTY, Sampler, module_of

ELEMENTS = 1_000


def array_paths(struct: Struct, version: int, above: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.is_array:
            yield (*above, field)
        if field.struct is not None:
            yield from array_paths(field.struct, version, (*above, field))


def wasteful(module: ModuleType, struct: Struct, version: int, path: tuple[Field, ...]) -> Any:
    """A message that is empty but for ELEMENTS smallest elements in the array at `path`."""
    sampler = Sampler(module, version, Random(0))
    message = inner = sampler.message(struct, EMPTY)
    for field in path[:-1]:
        assert field.struct is not None
        below = sampler.message(field.struct, EMPTY)
        setattr(inner, field.name, [below] if field.is_array else below)
        inner = below
    setattr(inner, path[-1].name, [sampler.value(path[-1], EMPTY)] * ELEMENTS)
    return message


def wasteful_targets(api: Api, direction: str) -> Iterator[Target]:
    module, struct = module_of(api), api.messages[direction]
    suffix = "" if direction == "data" else f"_{direction}"
    encode, decode = getattr(module, f"encode{suffix}"), getattr(module, f"decode{suffix}")
    for version in {api.versions[0], api.versions[-1]}:
        messages = [wasteful(module, struct, version, path) for path in array_paths(struct, version)]
        bodies = [encode(message, version) for message in messages]
        yield Target(f"{api.module}.decode{suffix}", version, decode, bodies)


def test_arrays_of_the_smallest_elements_take_memory_in_proportion() -> None:
    targets = [
        target for api in load_all() for side in api.messages for target in wasteful_targets(api, side)
    ]
    fuzzer = Fuzzer(0, targets)
    with fuzzer.tracing():
        for target in targets:
            for body in target.bodies:
                fuzzer.measure_one(target, body)
    assert fuzzer.accepted == fuzzer.tried > 0


def test_a_decoder_that_allocates_or_raises_too_much_is_found() -> None:
    fuzzer = Fuzzer(0, [])
    greedy = Target("greedy", 0, lambda body, version: bytes(BYTES_FOR_A_BODY_MAX * 2), [])
    careless = Target("careless", 0, lambda body, version: body[100], [])
    with pytest.raises(Found, match="bytes of memory"), fuzzer.tracing():
        fuzzer.measure_one(greedy, b"")
    with pytest.raises(Found, match="IndexError"):
        fuzzer.try_one(careless, b"")
