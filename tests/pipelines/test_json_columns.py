"""Whatever a JSON message holds, it is a row, and the table stays one that can be read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from postroad.pipelines.tables import Table, TableAddress, create_table, find_table
from postroad.pipelines.tables.files import archived
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.table import Batch
from tests.pipelines.archives import FORMATS, read_plainly, written
from tests.pipelines.batches import record_batch

DEEP = 5000


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return create_table(TableAddress(str(tmp_path / "lake"), request.param))


def test_names_with_control_characters_become_columns_that_every_format_can_keep(table: Table) -> None:
    found = _archived(table, rb'{"a\u0000b": 1, "c\u001fd": 2, "e\u007ff": 3, "\u0000": 4}')
    assert (found["a_b"], found["c_d"], found["e_f"], found["_"]) == (1, 2, 3, 4)
    assert find_table(str(table.location)).schema().names[-4:] == ["a_b", "c_d", "e_f", "_"]


def test_new_column_of_whole_numbers_takes_fractions_that_come_later(table: Table) -> None:
    json = JsonColumns({})
    values: list[list[bytes | None]] = [[b'{"a": 1}', b'{"a": 2.5}'], [b'{"a": 3}', b'{"a": "x"}']]
    batches = [record_batch(2 * number, 2, values=these) for number, these in enumerate(values)]
    table.append(Batch("q", 0, written(table, *batches, json=json)), json.kinds)
    assert table.location.directory is not None
    found = {row["offset"]: row["a"] for row in read_plainly(table.location.directory, table.format)}
    assert found == {0: 1.0, 1: 2.5, 2: 3.0, 3: None}


def test_column_of_the_table_keeps_its_type(tmp_path: Path) -> None:
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    json = JsonColumns({"a": "bigint"})
    files = written(table, record_batch(0, 2, values=[b'{"a": 1}', b'{"a": 2.5}']), json=json)
    table.append(Batch("q", 0, files), json.kinds)
    found = {row["offset"]: row["bad"] for row in read_plainly(tmp_path, "parquet")}
    assert found == {0: None, 1: "field a is double, and its column bigint"}


@pytest.mark.parametrize("value", [b"[" * DEEP, b'{"a":' * DEEP, b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"])
def test_value_that_is_nested_too_deeply_is_a_bad_row(tmp_path: Path, value: bytes) -> None:
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    assert _archived(table, value)["bad"] == "its JSON is nested too deeply"


def test_rows_cost_the_same_in_a_large_batch_as_in_a_small_one() -> None:
    """A list of all the batch's rows for each cell made it the square of them."""
    value = b'{"a": 1, "b": "x"}'
    few, many = (_cpu_s(record_batch(0, rows, values=[value] * rows)) for rows in (1000, 32_000))
    assert many < 4 * 32 * few


def _cpu_s(batch: Any) -> float:
    """The least of several, since a busy machine only adds to it."""
    found = []
    for _ in range(5):
        json = JsonColumns({})
        whole = archived(batch)
        begun = time.process_time()
        json.extend(whole)
        found.append(time.process_time() - begun)
    return min(found)


def _archived(table: Table, value: bytes) -> dict[str, Any]:
    """The row that it became."""
    json = JsonColumns({})
    files = written(table, record_batch(0, 1, values=[value]), json=json)
    table.append(Batch("q", 0, files), json.kinds)
    assert table.location.directory is not None
    (row,) = read_plainly(table.location.directory, table.format)
    assert row["value"] == value
    return row
