"""Keys go where Java's clients send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from postroad.client.partitioner import StickyPartition, for_key, murmur2
from postroad.client.runtime import OPERATING_SYSTEM


@given(st.binary(max_size=40))
def test_murmur2_is_that_of_other_clients(data: bytes) -> None:
    assert murmur2(data) == kafka_python_murmur2(data) & 0xFFFFFFFF


@pytest.mark.parametrize(("key", "expected"), [(b"21", -973932308), (b"foobar", -790332482)])
def test_murmur2_gives_the_values_of_kafkas_own_tests(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


@given(st.binary(max_size=20), st.integers(1, 100))
def test_a_key_has_one_partition_that_exists(key: bytes, partitions: int) -> None:
    assert for_key(key, partitions) == for_key(key, partitions)
    assert 0 <= for_key(key, partitions) < partitions


def test_sticky_partition_stays_until_told_to_move() -> None:
    sticky = StickyPartition(OPERATING_SYSTEM)
    first = sticky.choose(5)
    assert {sticky.choose(5) for _ in range(20)} == {first}
    sticky.move(5)
    assert sticky.choose(5) != first


def test_sticky_partition_survives_a_topic_that_became_smaller() -> None:
    sticky = StickyPartition(OPERATING_SYSTEM)
    sticky.choose(100)
    assert sticky.choose(1) == 0
    sticky.move(1)
    assert sticky.choose(1) == 0
