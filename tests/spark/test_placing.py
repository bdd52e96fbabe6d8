"""Rows go where Kafka's clients would send them, and a repeated task sends them to the same places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.client import partitioner
from postroad.spark import placing


@given(st.lists(st.binary(max_size=40), max_size=60))
def test_a_column_hashes_as_its_keys_one_by_one(keys: list[bytes]) -> None:
    hashes = placing.murmur2(pa.array(keys, pa.binary()))
    assert hashes.tolist() == [partitioner.murmur2(key) for key in keys]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_keys_of_any_length_hash_the_same_in_a_slice_of_a_column(kind: pa.DataType) -> None:
    keys = [bytes([size % 251]) * size for size in [*range(200), 5_000, 100_000]]
    hashes = placing.murmur2(pa.array([b"before", *keys, b"after"], kind).slice(1, len(keys)))
    assert hashes.tolist() == [partitioner.murmur2(key) for key in keys]


def test_a_row_goes_to_the_partition_it_names_else_by_its_key() -> None:
    keys = pa.array([b"a", b"b", None, b""], pa.binary())
    wanted = pa.array([4, None, 2, None], pa.int32())
    chosen = placing.topic_partition(keys, wanted, 4, 7, placing.Turn(0))
    assert chosen.tolist() == [4, partitioner.for_key(b"b", 7), 2, partitioner.for_key(b"", 7)]


def test_rows_without_a_key_visit_all_partitions_in_turn() -> None:
    rows = placing.CHUNK * 3
    chosen = placing.topic_partition(pa.nulls(rows, pa.binary()), None, rows, 3, placing.Turn(first=4))
    expected = np.repeat([1, 2, 0], placing.CHUNK)
    assert chosen.tolist() == expected.tolist()


def test_a_turn_depends_on_the_rows_alone_and_not_on_how_they_were_cut() -> None:
    rows = placing.CHUNK * 5 + 17
    whole = placing.Turn(2).take(rows, 4)
    turn = placing.Turn(2)
    pieces = [turn.take(size, 4) for size in (1, 700, 300, rows - 1001)]
    assert np.concatenate(pieces).tolist() == whole.tolist()


def test_rows_of_one_place_are_gathered_in_their_order() -> None:
    order, found = placing.gather(np.array([3, 1, 3, 3, 1, 0], np.int64))
    assert order.tolist() == [5, 1, 4, 0, 2, 3]
    assert found == [(0, 0, 1), (1, 1, 2), (3, 3, 3)]


def test_rows_that_stand_together_already_stay_where_they_are() -> None:
    assert placing.gather(np.array([2, 2, 5], np.int64)) == (None, [(2, 0, 2), (5, 2, 1)])
    assert placing.gather(np.array([], np.int64)) == (None, [])
