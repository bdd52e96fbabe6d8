"""What all three formats promise, without Spark: a batch is in a table once, wholly or not at all."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from postroad.pipelines.errors import PipelineError, WrongTable
from postroad.pipelines.tables import TableAddress, create_table, files, find_table
from postroad.pipelines.tables.files import OPEN_MAX, Files
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.table import Batch, Conflict, Table
from tests.pipelines.archives import (
    FORMATS,
    append_batches,
    offsets_in,
    read_plainly,
    unused_files,
    written,
)
from tests.pipelines.batches import DAY_MS, NOON_MS, record_batch

KILLS = 3
PATIENCE_S = 240.0  # a program takes two seconds to start, and many more on a machine with other work
ODD_NAMES = {"delta": "my lake 50% +ü#?", "iceberg": "my lake 50% +ü%20", "parquet": "my lake 50% +ü#?%20"}


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return create_table(TableAddress(str(tmp_path / "lake"), request.param))


def test_batch_is_appended_once_however_often_it_comes(table: Table) -> None:
    for _ in range(3):
        appended = [table.append(_batch(table, number, number * 10), {}) for number in range(2)]
    assert appended == [False, False]
    assert offsets_in(table) == list(range(20))
    assert table.ends(["orders"]) == {("orders", 0): 20}
    assert not unused_files(table)


def test_offsets_that_are_archived_already_are_refused(table: Table) -> None:
    table.append(_batch(table, 0, 0), {})
    with pytest.raises(
        PipelineError, match=r"orders/0 is archived up to offset 10 already, and offset 5 came"
    ):
        table.append(_batch(table, 0, 5, query="another"), {})
    assert offsets_in(table) == list(range(10))
    assert not unused_files(table)


def test_of_two_writers_that_saw_the_same_table_one_wins(table: Table) -> None:
    one, other = table.recorded("q", ["orders"]), table.recorded("q", ["orders"])
    ends = {("orders", 0): 10}
    table.commit(one, _batch(table, 0, 0), ends, {})
    with pytest.raises(Conflict):
        table.commit(other, _batch(table, 0, 0), ends, {})
    assert offsets_in(table) == list(range(10))


def test_columns_are_added_and_older_rows_lack_them(table: Table) -> None:
    table.append(_batch(table, 0, 0), {})
    json = JsonColumns({})
    values = [b'{"a": 1, "n": {"x": [1]}}', b"{}", b"oops", None]
    files = written(table, record_batch(10, 4, values=values), json=json)
    table.append(Batch("q", 1, files), json.kinds)
    found = {row["offset"]: (row["a"], row["n"], row["bad"]) for row in _read(table)}
    assert found[9] == (None, None, None)
    assert found[10] == (1, '{"x":[1]}', None)
    assert found[11] == found[13] == (None, None, None)
    assert found[12][2].startswith("not JSON")
    assert list(table.schema().names)[-3:] == ["bad", "a", "n"]


def test_compaction_keeps_every_row_and_what_the_table_knows(table: Table) -> None:
    for number in range(3):
        table.append(_batch(table, number, number * 10), {})
    assert table.optimize() == (3, 1)
    assert table.optimize() == (1, 1)
    assert offsets_in(table) == list(range(30))
    assert not table.append(_batch(table, 2, 20), {})
    assert len(table.snapshot().files) == 1


def test_file_that_has_become_large_is_followed_by_another(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "TARGET_BYTES", 50_000)
    monkeypatch.setattr(files, "GROUP_ROWS", 100)
    values: list[bytes | None] = [os.urandom(1000) for _ in range(100)]
    batches = [record_batch(number * 100, 100, values=values) for number in range(4)]
    found = written(table, *batches)
    assert [file.rows for file in found] == [100] * 4
    table.append(Batch("q", 0, found), {})
    assert offsets_in(table) == list(range(400))


def test_retention_deletes_whole_dates_and_the_ends_stay(table: Table) -> None:
    times = [NOON_MS, NOON_MS + DAY_MS, NOON_MS + 2 * DAY_MS]
    table.append(Batch("q", 0, written(table, record_batch(0, 3, times=times))), {})
    assert table.delete_dates_before(date(2023, 11, 16)) == 2
    assert offsets_in(table) == [2]
    assert table.delete_dates_before(date(2023, 11, 20)) == 1
    assert table.snapshot(["orders"]).ends == {("orders", 0): 3}


def test_times_of_a_wrong_clock_stop_no_archive(table: Table) -> None:
    wild = [-1, 0, NOON_MS * 1000, *(NOON_MS + day * DAY_MS for day in range(OPEN_MAX + 5))]
    table.append(Batch("q", 0, written(table, record_batch(0, len(wild), times=wild))), {})
    assert len(table.snapshot().files) == len(wild)
    assert {date(1969, 12, 31), date(1970, 1, 1)} < {row["date"] for row in _read_dates(table)}


def test_topics_and_partitions_have_ends_of_their_own(table: Table) -> None:
    files = (
        *written(table, record_batch(5, 2, partition=7)),
        *written(table, record_batch(0, 3, topic="a.b-c_d")),
    )
    table.append(Batch("q", 0, files), {})
    assert table.snapshot().ends == {("orders", 7): 7, ("a.b-c_d", 0): 3}
    assert table.snapshot().topics == ("a.b-c_d", "orders")
    assert table.ends(["nobody"]) == {}


def test_abandoned_task_leaves_nothing(table: Table) -> None:
    files = Files(table)
    files.write(record_batch(0, 5))
    files.abandon()
    assert not unused_files(table)


def test_task_on_a_full_disk_says_so_and_leaves_nothing(table: Table) -> None:
    """The disk is full in that no file may grow beyond a few bytes."""
    noise = random.Random(1).randbytes(100_000)
    files = Files(table)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        files.write(record_batch(0, 2, times=[NOON_MS, NOON_MS + DAY_MS], values=[noise, noise]))
        with pytest.raises(OSError, match="File too large"):
            files.finish()
        files.abandon()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not unused_files(table)


@pytest.mark.parametrize("format_", FORMATS)
def test_writer_killed_at_any_moment_leaves_each_row_once(tmp_path: Path, format_: str) -> None:
    chance = random.Random(format_)
    table = create_table(TableAddress(str(tmp_path), format_))
    for _ in range(KILLS):
        program = [sys.executable, "-m", "tests.pipelines.table_writer", str(tmp_path), format_]
        before = table.ends(["orders"]).get(("orders", 0), 0)
        with subprocess.Popen(program, cwd=Path(__file__).parents[2]) as writer:
            deadline = time.monotonic() + PATIENCE_S
            while table.ends(["orders"]).get(("orders", 0), 0) == before:
                assert writer.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)  # or it would take the writer its core
            time.sleep(chance.random() / 10)
            os.kill(writer.pid, signal.SIGKILL)
        end = table.ends(["orders"])["orders", 0]
        assert offsets_in(table) == list(range(end))


def test_parquet_commit_that_was_not_carried_out_is_made_good(tmp_path: Path) -> None:
    """The crash between the log's entry and the renaming: replayed here from the files it would leave."""
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    batch = _batch(table, 0, 0)
    staged = tmp_path / batch.files[0].path
    shutil.copy(staged, tmp_path / "kept")
    table.append(batch, {})
    for shown in tmp_path.glob("topic=*/date=*/*.parquet"):
        shown.unlink()
    shutil.move(tmp_path / "kept", staged)

    assert not table.append(_batch(table, 0, 0), {})
    assert offsets_in(table) == list(range(10))


def test_foreign_things_at_the_path_are_refused_and_left_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "delta", pa.table({"a": [1]}))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    duckdb.sql(f"copy (select 1 a) to '{tmp_path}/full/x.parquet'")
    before = sorted(tmp_path.rglob("*"))
    cases = [
        ("delta", "delta", "a Delta table that is no archive: it has no column topic"),
        ("delta", "parquet", "format delta, not parquet: say --format delta"),
        ("full", "parquet", "is not empty, and no archive is in it"),
        ("file", "iceberg", "is a file: choose a directory"),
    ]
    for name, format_, said in cases:
        with pytest.raises(WrongTable, match=said):
            create_table(TableAddress(str(tmp_path / name), format_))
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(WrongTable, match="no archive is at"):
        find_table(str(tmp_path / "nothing"))


def test_table_is_found_in_whichever_format(table: Table) -> None:
    assert find_table(str(table.location)).format == table.format
    assert find_table(table.location.url).format == table.format


@pytest.mark.parametrize("format_", FORMATS)
def test_directory_may_have_an_odd_name(tmp_path: Path, format_: str) -> None:
    odd = tmp_path / ODD_NAMES[format_]
    table = create_table(TableAddress(str(odd), format_))
    append_batches(table, range(3))
    found = find_table(str(odd))
    assert all(Path(path.removeprefix("file://")).exists() for path in found.snapshot().files)
    assert found.optimize() == (3, 1)
    assert offsets_in(found) == list(range(30))
    assert [made.name for made in tmp_path.iterdir()] == [odd.name]


def test_directory_whose_name_a_library_would_take_for_another_is_refused(tmp_path: Path) -> None:
    for format_, name in (("iceberg", "what?"), ("iceberg", "#1"), ("delta", "a%20b")):
        with pytest.raises(PipelineError, match=r"choose another, or take --format .*parquet"):
            create_table(TableAddress(str(tmp_path / name), format_))
    assert not list(tmp_path.iterdir())


def test_plain_parquet_wants_a_directory() -> None:
    with pytest.raises(PipelineError, match="take --format delta or iceberg"):
        create_table(TableAddress("s3://bucket/lake", "parquet"))


def _batch(table: Table, number: int, first: int, query: str = "q") -> Batch:
    return Batch(query, number, written(table, record_batch(first, 10)))


def _read(table: Table) -> list[dict[str, Any]]:
    assert table.location.directory is not None
    return read_plainly(table.location.directory, table.format)


def _read_dates(table: Table) -> list[dict[str, Any]]:
    """Without the timestamps, which are beyond what Python's can be."""
    found = table.snapshot().files
    return [{"date": date.fromisoformat(path.split("date=")[1][:10])} for path in found]
