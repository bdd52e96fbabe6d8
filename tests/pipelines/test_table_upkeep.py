"""Compaction and retention beside other writers: no row is lost, none is there twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from postroad.cli.pipeline import pipeline
from postroad.pipelines.archive import ArchiveSettings, Upkeep, archive, oldest_kept
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables import Table, TableAddress, create_table
from postroad.pipelines.tables.compaction import SmallFile, Swap, compact
from postroad.pipelines.tables.delta import Delta
from postroad.pipelines.tables.iceberg import Iceberg
from postroad.pipelines.tables.parquet import ManifestEntry, Parquet
from postroad.pipelines.tables.table import Batch, Conflict, DataFile
from tests.pipelines.archives import FORMATS, append_batches, offsets_in, written
from tests.pipelines.batches import DAY_MS, record_batch

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

    def swap(group: Sequence[SmallFile], merged: DataFile) -> bool:
        append_batches(table, [next(batches)])
        return swap_of(table)(group, merged)

    compact(table, small_files(table), table.schema(), swap)
    assert offsets_in(table) == list(range(40))
    assert len(table.snapshot().files) == 2


def test_files_that_another_compacts_meanwhile_are_left_to_it(table: Table) -> None:
    append_batches(table, range(3))
    small = small_files(table)

    def swap(group: Sequence[SmallFile], merged: DataFile) -> bool:
        table.optimize()
        return swap_of(table)(group, merged)

    compact(table, small, table.schema(), swap)
    assert offsets_in(table) == list(range(30))
    assert len(table.snapshot().files) == 1


def test_deleted_dates_do_not_come_back_by_a_compaction(table: Table) -> None:
    append_batches(table, range(3))

    def swap(group: Sequence[SmallFile], merged: DataFile) -> bool:
        assert table.delete_before(date(2030, 1, 1)) == 3
        return swap_of(table)(group, merged)

    compact(table, small_files(table), table.schema(), swap)
    assert table.snapshot().files == ()


def test_commit_that_is_in_doubt_is_found_and_not_made_again(table: Table) -> None:
    append_batches(table, range(3))
    answers = iter([True, False])

    def swap(group: Sequence[SmallFile], merged: DataFile) -> bool:
        assert swap_of(table)(group, merged)
        if next(answers):
            raise Conflict("it has taken place, and says that it has not")
        return True

    compact(table, small_files(table), table.schema(), swap)
    assert offsets_in(table) == list(range(30))
    assert len(table.snapshot().files) == 1


def test_compaction_of_a_table_that_never_rests_gives_up_and_harms_nothing(table: Table) -> None:
    append_batches(table, range(3))

    def swap(group: Sequence[SmallFile], merged: DataFile) -> bool:
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
    times = [now_ms - hours * HOUR_MS for hours in (100, 46, 31, 1)]
    table.append(Batch("q", 0, written(table, record_batch(0, 4, times=times))), {})
    settings = ArchiveSettings("", ["orders"], str(tmp_path), retention_ms=47 * HOUR_MS)
    Upkeep(table, settings).run()
    assert offsets_in(table) == [1, 2, 3]


@pytest.mark.parametrize("hours", [24, 25, 47, 48, 49, 24 * 90])
@pytest.mark.parametrize("hour", [0, 7, 23])
def test_retention_deletes_nothing_younger_than_asked_and_all_dates_that_are_older(
    hours: int, hour: int
) -> None:
    now = datetime(2026, 3, 10, hour, 59, 59, 999_000, UTC)
    kept_from = datetime.combine(oldest_kept(now, hours * HOUR_MS), time.min, UTC)
    last_deleted = kept_from - timedelta(milliseconds=1)
    assert now - last_deleted > timedelta(hours=hours)
    assert now - last_deleted <= timedelta(hours=hours + 24)


def test_retention_longer_than_there_are_dates_deletes_nothing() -> None:
    assert oldest_kept(datetime.now(UTC), 10**18) == date.min


def test_retention_below_a_day_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    settings = ArchiveSettings("", ["orders"], str(tmp_path), retention_ms=DAY_MS - 1)
    with pytest.raises(PipelineError, match="at least a day"):
        archive(Mock(SparkSession), settings)
    words = ["archive", "-t", "orders", "--to", str(tmp_path), "--retention", "23h"]
    outcome = CliRunner().invoke(pipeline, words)
    assert outcome.exit_code == 2
    assert "at least 1d" in outcome.output


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


def small_files(table: Table) -> list[SmallFile]:
    found = []
    for path in table.snapshot().files:
        below = table.location.relative(path)
        found.append(SmallFile(below, "orders", below.split("date=")[1][:10], 1000))
    return found


def swap_of(table: Table) -> Swap:
    assert isinstance(table, Delta | Iceberg | Parquet)
    return table.swap
