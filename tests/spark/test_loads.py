"""The same rows make the same loads and batches, however Spark hands them over."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.spark import loads as module
from postroad.spark.cuts import cut
from postroad.spark.loads import loads
from postroad.spark.rows import RECORD_BYTES, sizes


def rows_of(values: list[bytes]) -> pa.RecordBatch:
    keys = [None if len(value) % 3 else value[:2] for value in values]
    headers = [[{"key": "h", "value": value[:1]}] if len(value) % 2 else None for value in values]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.record_batch(
        [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(headers, kind)],
        ["key", "value", "headers"],
    )


def cut_at(batch: pa.RecordBatch, topic_partitions: list[int]) -> list[pa.RecordBatch]:
    bounds = [
        0,
        *sorted(topic_partition % (len(batch) + 1) for topic_partition in topic_partitions),
        len(batch),
    ]
    return [batch.slice(first, end - first) for first, end in itertools.pairwise(bounds)]


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=80),
    st.lists(st.integers(0, 80), max_size=5),
    st.lists(st.integers(0, 80), max_size=5),
)
def test_loads_depend_on_the_rows_alone(values: list[bytes], one: list[int], other: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS", 9)
        batch = rows_of(values)
        first = [load.to_pylist() for load in loads(cut_at(batch, one), 50)]
        second = [load.to_pylist() for load in loads(cut_at(batch, other), 50)]
    assert first == second
    assert [row["value"] for load in first for row in load] == values
    assert all(len(load) <= 9 for load in first)


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=80), st.integers(1, 400))
def test_batches_hold_every_row_once_and_keep_to_their_size(values: list[bytes], limit: int) -> None:
    batches = list(cut(rows_of(values), limit))
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == values
    assert all(len(batch) == 1 or int(sizes(batch).sum()) <= limit for batch in batches)


def test_a_row_weighs_its_key_value_and_headers() -> None:
    kind: Any = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([None, [{"key": "ab", "value": b"cde"}, {"key": "f", "value": None}], []], kind)
    batch = pa.record_batch(
        [pa.array([b"k", None, b"key"]), pa.array([b"value", b"v", None]), headers],
        ["key", "value", "headers"],
    )
    assert (sizes(batch) - RECORD_BYTES).tolist() == [6, 7, 3]
    assert (sizes(batch.slice(1, 2)) - RECORD_BYTES).tolist() == [7, 3]
