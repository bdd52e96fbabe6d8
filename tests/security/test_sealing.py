"""Sealed values are read by holders of the master key only, and not changed unseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.security.sealing import seal, unseal

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


@given(st.text(max_size=20), st.binary(max_size=200))
def test_value_comes_back_and_its_seal_is_always_the_same(name: str, value: bytes) -> None:
    sealed = seal(KEY, name, value)
    assert unseal(KEY, name, sealed) == value
    assert seal(KEY, name, value) == sealed
    assert len(sealed) == len(value) + 32


@given(st.binary(min_size=8, max_size=100))
def test_nothing_of_the_value_can_be_read(value: bytes) -> None:
    assert value not in seal(KEY, "users/ann", value)


@given(st.binary(max_size=100), st.data())
def test_any_changed_bit_is_found(value: bytes, data: st.DataObject) -> None:
    sealed = bytearray(seal(KEY, "users/ann", value))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match="another master key, or was changed"):
        unseal(KEY, "users/ann", bytes(sealed))


def test_another_key_another_name_and_a_cut_value_are_found() -> None:
    sealed = seal(KEY, "users/ann", b"verifier")
    for key, name, value in (
        (OTHER, "users/ann", sealed),
        (KEY, "users/bob", sealed),
        (KEY, "users/ann", sealed[:-1]),
        (KEY, "users/ann", b""),
    ):
        with pytest.raises(ValueError, match="sealed with another master key"):
            unseal(key, name, value)


def test_equal_values_under_two_names_look_different() -> None:
    assert seal(KEY, "users/ann", b"verifier")[32:] != seal(KEY, "users/bob", b"verifier")[32:]
