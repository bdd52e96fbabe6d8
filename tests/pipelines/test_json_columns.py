"""Whatever a JSON message holds, it is a row, and the table stays one that can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postroad.pipelines.tables import Table, TableAddress, create_table, find_table
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


@pytest.mark.parametrize("value", [b"[" * DEEP, b'{"a":' * DEEP, b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"])
def test_value_that_is_nested_too_deeply_is_a_bad_row(tmp_path: Path, value: bytes) -> None:
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    assert _archived(table, value)["bad"] == "its JSON is nested too deeply"


def _archived(table: Table, value: bytes) -> dict[str, Any]:
    """The row that it became."""
    json = JsonColumns({})
    files = written(table, record_batch(0, 1, values=[value]), json=json)
    table.append(Batch("q", 0, files), json.kinds)
    assert table.location.directory is not None
    (row,) = read_plainly(table.location.directory, table.format)
    assert row["value"] == value
    return row
