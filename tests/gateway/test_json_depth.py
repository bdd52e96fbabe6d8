import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.gateway.json_depth import DEPTH_MAX, is_too_deep


def nested(depth: int) -> bytes:
    return b'[{"a":' * (depth // 2) + b"[" * (depth % 2) + b"]" * (depth % 2) + b"}]" * (depth // 2)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@pytest.mark.parametrize(("depth", "too_deep"), [(0, False), (DEPTH_MAX, False), (DEPTH_MAX + 1, True)])
def test_the_bound_is_exact(depth: int, too_deep: bool) -> None:
    assert is_too_deep(nested(depth)) is too_deep


def test_brackets_in_strings_do_not_count() -> None:
    assert not is_too_deep(json.dumps({"[" * 100: '\\"[[' * 100, "b": "{" * 100}).encode())


@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_ordinary_values_pass(value: Any) -> None:
    assert is_too_deep(json.dumps(value).encode()) is (depth_of(value) > DEPTH_MAX)


@pytest.mark.parametrize(
    "text", [b"[" * 4_000_000, b"[]" * 2_000_000, b'"a' * 2_000_000, b'"' + b'\\"' * 2_000_000 + b"\\"]
)
def test_hostile_texts_take_no_more_than_a_moment(text: bytes) -> None:
    began = time.thread_time()
    is_too_deep(text)
    assert time.thread_time() - began < 3
