"""Payloads made to take a gateway's memory when somebody looks at them."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from postroad.gateway.console.payloads import HEX, JSON, MESSAGE_PACK, shown

MANY = 200_000
DEEP = 60


def nested(depth: int, inner: object) -> object:
    return inner if depth == 0 else [nested(depth - 1, inner)]


@pytest.mark.parametrize(
    ("data", "format_"),
    [
        (b"[" * DEEP + b"1," * MANY + b"1" + b"]" * DEEP, JSON),
        (msgspec.msgpack.encode(nested(DEEP, [1] * MANY)), MESSAGE_PACK),
        (msgspec.msgpack.encode(nested(2 * DEEP, [1] * MANY)), HEX),  # too deep, as in JSON
    ],
    ids=["json", "msgpack", "deeper msgpack"],
)
def test_many_lines_deep_inside_are_not_indented(data: bytes, format_: str) -> None:
    """Each line had its indent: megabytes became hundreds of them."""
    tracemalloc.start()
    try:
        found = shown(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.format == format_
    assert found.is_cut
    assert peak < 20 * len(data)


def test_what_is_small_is_indented() -> None:
    assert shown(b'{"a":[1,1.50]}').text == '{\n  "a": [\n    1,\n    1.50\n  ]\n}'
    assert shown(msgspec.msgpack.encode({"a": [1]})).text == '{\n  "a": [\n    1\n  ]\n}'
