"""Compaction and retention beside other writers: no row is lost, none is there twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from postroad.cli.pipeline import pipeline
from postroad.pipelines.archive import ArchiveSettings, Upkeep, archive
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables import Table, TableAddress, create_table
from postroad.pipelines.tables.compaction import compact
from postroad.pipelines.tables.iceberg import Iceberg
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.parquet import ManifestEntry, Parquet
from postroad.pipelines.tables.retention import delete_before
from postroad.pipelines.tables.table import Batch, Conflict, DataFile, TableFile
from tests.pipelines.archives import FORMATS, append_batches, offsets_in, read_plainly, written
from tests.pipelines.batches import DAY_MS, NOON_MS, record_batch

HOUR_MS = DAY_MS // 24


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return create_table(TableAddress(str(tmp_path / "lake"), request.param))


class SeenLate(Parquet):
    """Between its look at the log and its look at the files somebody else compacts the table."""

    is_first = True

    def _newest(self) -> ManifestEntry:
        entry = super()._newest()
        if self.is_first:
            self.is_first = False
            Parquet(self.location).optimize()
        return entry


class ForgetsLate(Iceberg):
    """While it commits that old snapshots are forgotten, a batch is appended."""

    is_first = True
    is_forgetting = False

    def _forget(self) -> None:
        self.is_forgetting = True
        super()._forget()

    def _catalog(self) -> Any:
        catalog: Any = super()._catalog()
        if self.is_forgetting and self.is_first:
            write = catalog._write_metadata

            def write_late(*arguments: Any, **named: Any) -> None:
                if self.is_first:
                    self.is_first = False
                    append_batches(Iceberg(self.location), [3])
                write(*arguments, **named)

            catalog._write_metadata = write_late
        return catalog


def test_compactions_at_once_leave_each_row_once(table: Table) -> None:
    append_batches(table, range(30))
    start = threading.Barrier(2)

    def optimize(_: int) -> None:
        start.wait()
        table.optimize()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(optimize, range(2)))
    assert offsets_in(table) == list(range(300))
    assert len(table.snapshot().files) == 1


def test_old_snapshots_are_forgotten_though_somebody_commits_meanwhile(tmp_path: Path) -> None:
    location = create_table(TableAddress(str(tmp_path / "lake"), "iceberg")).location
    table = ForgetsLate(location)
    append_batches(table, range(3))
    table.optimize()
    assert not table.is_first
    assert offsets_in(table) == list(range(40))


def test_archive_goes_on_while_its_files_are_merged(table: Table) -> None:
    """Here as the worst case: a micro-batch is committed between the merge and its commit."""
    append_batches(table, range(3))
    batches = iter(range(3, 5))

    def swap(group: Sequence[TableFile], merged: DataFile) -> bool:
        append_batches(table, [next(batches)])
        return swap_of(table)(group, merged)

    compact(table, small_files(table), table.schema(), swap)
    assert offsets_in(table) == list(range(40))
    assert len(table.snapshot().files) == 2


def test_files_that_another_compacts_meanwhile_are_left_to_it(table: Table) -> None:
    append_batches(table, range(3))
    small = small_files(table)

    def swap(group: Sequence[TableFile], merged: DataFile) -> bool:
        table.optimize()
        return swap_of(table)(group, merged)

    compact(table, small, table.schema(), swap)
    assert offsets_in(table) == list(range(30))
    assert len(table.snapshot().files) == 1


def test_deleted_dates_do_not_come_back_by_a_compaction(table: Table) -> None:
    append_batches(table, range(3))

    def swap(group: Sequence[TableFile], merged: DataFile) -> bool:
        assert table.delete_dates_before(date(2030, 1, 1)) == 3
        return swap_of(table)(group, merged)

    compact(table, small_files(table), table.schema(), swap)
    assert table.snapshot().files == ()


def test_commit_that_is_in_doubt_is_found_and_not_made_again(table: Table) -> None:
    append_batches(table, range(3))
    answers = iter([True, False])

    def swap(group: Sequence[TableFile], merged: DataFile) -> bool:
        assert swap_of(table)(group, merged)
        if next(answers):
            raise Conflict("it has taken place, and says that it has not")
        return True

    compact(table, small_files(table), table.schema(), swap)
    assert offsets_in(table) == list(range(30))
    assert len(table.snapshot().files) == 1


def test_compaction_of_a_table_that_never_rests_gives_up_and_harms_nothing(table: Table) -> None:
    append_batches(table, range(3))

    def swap(group: Sequence[TableFile], merged: DataFile) -> bool:
        raise Conflict("again")

    with pytest.raises(Conflict):
        compact(table, small_files(table), table.schema(), swap)
    assert offsets_in(table) == list(range(30))


def test_parquet_snapshot_is_whole_though_a_compaction_comes_between(tmp_path: Path) -> None:
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    append_batches(table, range(3))
    snapshot = SeenLate(table.location).snapshot()
    assert snapshot.ends == {("orders", 0): 30}
    assert len(snapshot.files) == 1
    assert all(Path(file).exists() for file in snapshot.files)


def test_parquet_compaction_beside_another_meets_no_missing_file(tmp_path: Path) -> None:
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    append_batches(table, range(3))
    SeenLate(table.location).optimize()
    assert offsets_in(table) == list(range(30))


def test_retention_of_47_hours_keeps_messages_of_31_hours(table: Table, tmp_path: Path) -> None:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    times = [now_ms - hours * HOUR_MS for hours in (100, 48, 46, 31, 1)]
    table.append(Batch("q", 0, written(table, record_batch(0, 5, times=times))), {})
    settings = ArchiveSettings("", ["orders"], str(tmp_path), retention_ms=47 * HOUR_MS)
    Upkeep(table, settings).run()
    assert offsets_in(table) == [2, 3, 4]


def test_retention_is_exact_to_the_millisecond_within_a_file(table: Table) -> None:
    times = [NOON_MS - HOUR_MS, NOON_MS + 1, NOON_MS - 1, NOON_MS, NOON_MS - DAY_MS, NOON_MS + DAY_MS]
    table.append(Batch("q", 0, written(table, record_batch(0, 6, times=times))), {})
    assert delete_before(table, NOON_MS * 1000) == 2
    assert offsets_in(table) == [1, 3, 5]
    assert delete_before(table, NOON_MS * 1000) == 0
    assert table.snapshot(["orders"]).ends == {("orders", 0): 6}


def test_retention_deletes_a_file_of_which_nothing_is_left_and_leaves_younger_ones_as_they_are(
    table: Table,
) -> None:
    for number, hours in enumerate((-2, -1, 1, 2)):
        batch = record_batch(number * 10, 10, times=[NOON_MS + hours * HOUR_MS] * 10)
        table.append(Batch("q", number, written(table, batch)), {})
    before = table.snapshot().files
    assert delete_before(table, NOON_MS * 1000) == 2
    assert offsets_in(table) == list(range(20, 40))
    assert set(table.snapshot().files) < set(before)
    assert delete_before(table, (NOON_MS + 3 * HOUR_MS) * 1000) == 2
    assert table.snapshot().files == ()


def test_retention_keeps_all_columns_of_the_rows_that_stay(table: Table) -> None:
    json = JsonColumns({})
    values: list[bytes | None] = [b'{"a": 1}', b'{"a": 2, "b": "x"}', b"no json"]
    batch = record_batch(0, 3, times=[NOON_MS - 1, NOON_MS, NOON_MS + 1], values=values)
    table.append(Batch("q", 0, written(table, batch, json=json)), json.kinds)
    whole = sorted(read_plainly(of(table), table.format), key=lambda row: row["offset"])
    delete_before(table, NOON_MS * 1000)
    assert sorted(read_plainly(of(table), table.format), key=lambda row: row["offset"]) == whole[1:]


def test_retention_looks_again_where_a_file_is_compacted_meanwhile(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        batch = record_batch(number * 10, 10, times=[NOON_MS - 1] * 5 + [NOON_MS] * 5)
        table.append(Batch("q", number, written(table, batch)), {})
    swap, is_first = swap_of(table), [True]

    def swap_late(group: Sequence[TableFile], merged: DataFile | None, **named: Any) -> bool:
        if is_first.pop() if is_first else False:
            table.optimize()
        return swap(group, merged, **named)

    monkeypatch.setattr(table, "swap", swap_late)
    assert delete_before(table, NOON_MS * 1000) >= 1
    assert offsets_in(table) == [offset for offset in range(30) if offset % 10 >= 5]


def test_retention_longer_than_there_are_dates_deletes_nothing(table: Table, tmp_path: Path) -> None:
    append_batches(table, range(3))
    Upkeep(table, ArchiveSettings("", ["orders"], str(tmp_path), retention_ms=10**18)).run()
    assert offsets_in(table) == list(range(30))


def test_retention_below_an_hour_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    settings = ArchiveSettings("", ["orders"], str(tmp_path), retention_ms=HOUR_MS - 1)
    with pytest.raises(PipelineError, match="at least an hour"):
        archive(Mock(SparkSession), settings)
    words = ["archive", "-t", "orders", "--to", str(tmp_path), "--retention", "59m"]
    outcome = CliRunner().invoke(pipeline, words)
    assert outcome.exit_code == 2
    assert "at least 1h" in outcome.output


def test_upkeep_that_fails_ends_no_archive(
    table: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ArchiveSettings("", ["orders"], str(tmp_path), optimize=True, retention_ms=DAY_MS)
    upkeep = Upkeep(table, settings, every_s=0)
    append_batches(table, range(3))
    upkeep.now_and_then()
    assert (upkeep.deleted, upkeep.optimized) == (3, (0, 0))
    shutil.rmtree(tmp_path / "lake")
    upkeep.now_and_then()
    assert "no upkeep now, the next time will do" in caplog.text


def small_files(table: Table) -> list[TableFile]:
    found = []
    for path in table.snapshot().files:
        below = table.location.relative(path)
        found.append(TableFile(below, "orders", below.split("date=")[1][:10], 1000))
    return found


def swap_of(table: Table) -> Any:
    return table.swap


def of(table: Table) -> Path:
    assert table.location.directory is not None
    return table.location.directory
