"""A commit that took place keeps its files, whatever is said of it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables import Table, TableAddress, create_table
from postroad.pipelines.tables.delta import Delta
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.schema import Kind, json_kinds
from postroad.pipelines.tables.settings import FileSettings
from postroad.pipelines.tables.sink import ArchiveWriter, Written
from postroad.pipelines.tables.table import Batch, Conflict, Reached, Recorded, TopicPartition
from tests.pipelines.archives import FORMATS, append_batches, offsets_in, unused_files, written
from tests.pipelines.batches import record_batch


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return create_table(TableAddress(str(tmp_path / "lake"), request.param))


class InDoubt(Delta):
    """A table whose commits take place and say that they have not, as when an answer is lost."""

    def commit(
        self, at: Recorded, batch: Batch, ends: Mapping[TopicPartition, int], new_columns: Mapping[str, Kind]
    ) -> None:
        super().commit(at, batch, ends, new_columns)
        raise Conflict("somebody was first")


def test_delta_commit_whose_checkpoint_fails_keeps_its_rows(tmp_path: Path) -> None:
    table = create_table(TableAddress(str(tmp_path), "delta"))
    DeltaTable(tmp_path).alter.set_table_properties({"delta.checkpointInterval": "3"})
    (tmp_path / "_delta_log" / f"{2:020}.checkpoint.parquet").mkdir()
    writer, first = _writer(table), [_written(table, 0)]
    with pytest.raises(DeltaError):
        writer.commit([*first], 0)
    writer.abort([*first], 0)

    writer.commit([_written(table, 0)], 0)
    assert offsets_in(table) == list(range(10))


def test_parquet_commit_that_can_not_be_carried_out_keeps_its_rows(tmp_path: Path) -> None:
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    in_the_way = tmp_path / "topic=orders"
    in_the_way.write_text("")
    messages = [_written(table, 0)]
    _writer(table).commit([*messages], 0)
    with pytest.raises(OSError, match="topic=orders"):
        table.snapshot()
    in_the_way.unlink()

    _writer(table).commit([_written(table, 0)], 0)
    assert offsets_in(table) == list(range(10))


def test_commit_that_meets_itself_keeps_its_rows(tmp_path: Path) -> None:
    table = create_table(TableAddress(str(tmp_path), "delta"))
    assert InDoubt(table.location).append(Batch("q", 0, written(table, record_batch(0, 10))), {})
    assert offsets_in(table) == list(range(10))


def test_batch_whose_tasks_failed_leaves_no_files(table: Table) -> None:
    append_batches(table, range(2))
    _writer(table).abort([_written(table, 2), None], 2)
    assert not unused_files(table)
    assert offsets_in(table) == list(range(20))


def test_batch_without_records_moves_the_end_all_the_same(table: Table) -> None:
    append_batches(table, range(1))
    table.append(Batch("q", 1, (), (Reached("orders", 1, 0, 12), Reached("orders", 1, 3, 5))), {})
    assert table.ends(["orders"]) == {("orders", 0): 12, ("orders", 3): 5}
    assert not table.append(Batch("q", 1, (), (Reached("orders", 1, 0, 12),)), {})
    assert offsets_in(table) == list(range(10))


def test_topic_that_was_made_anew_is_refused(table: Table) -> None:
    files = written(table, record_batch(0, 10))
    table.append(Batch("q", 0, files, (Reached("orders", 7, 0, 10),)), {})
    append_batches(table, [1])  # of a broker that knows no ids
    assert table.snapshot().topic_numbers == {"orders": 7}
    anew = written(table, record_batch(20, 10))
    with pytest.raises(PipelineError, match="orders was deleted and created anew since it was archived"):
        table.append(Batch("q", 2, anew, (Reached("orders", 8, 0, 30),)), {})
    assert offsets_in(table) == list(range(20))
    assert not unused_files(table)


def test_column_that_another_archive_has_added_meanwhile_keeps_its_type(table: Table) -> None:
    ours, same, others = JsonColumns({}), JsonColumns({}), JsonColumns({})
    files = written(table, record_batch(10, 1, values=[b'{"a": 1, "b": 1}']), json=ours)
    fitting = written(table, record_batch(10, 1, values=[b'{"a": 1}']), json=same)
    theirs = record_batch(0, 1, topic="payments", values=[b'{"a": 2, "B": "text"}'])
    table.append(Batch("another", 0, written(table, theirs, json=others)), others.kinds)

    with pytest.raises(PipelineError, match="another archive has just added the column b"):
        table.append(Batch("q", 0, files), ours.kinds)
    table.append(Batch("q", 0, fitting), same.kinds)
    assert json_kinds(table.schema()) == {"bad": "string", "a": "bigint", "B": "string"}


def _writer(table: Table) -> ArchiveWriter:
    return ArchiveWriter(FileSettings(TableAddress(str(table.location), table.format)))


def _written(table: Table, number: int) -> Written:
    """What a task of that micro-batch says."""
    reached = Reached("orders", 1, 0, number * 10 + 10)
    return Written("q", list(written(table, record_batch(number * 10, 10))), [reached])
