"""A merged table holds for each key what its last change says, in however many steps it came."""

from __future__ import annotations

import random
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from postroad.pipelines.changes import Form, Reading
from postroad.pipelines.errors import PipelineError, WrongTable
from postroad.pipelines.tables import TableAddress
from postroad.pipelines.tables.derived import Change, create_derived
from postroad.pipelines.tables.growing_columns import merged
from postroad.pipelines.tables.merged import Merged, Merging, base_schema, with_kinds
from postroad.pipelines.tables.schema import kind_of
from postroad.pipelines.tables.table import Conflict
from postroad.spark.columns import TYPES
from tests.pipelines.merges import FORMATS, read_merged, values_of

TIME_US = 1_700_000_000_000_000
BUCKETS = 3

Told = tuple[int, int, bytes | None, bytes | None]  # partition, offset, key, value


class Merge:
    """What the driver does, without Spark: changes to tasks, what they did into one commit."""

    def __init__(
        self,
        to: Path | str,
        format_: str,
        form: Form = "json",
        key: tuple[str, ...] = (),
        *,
        fails: bool = True,
        catalog: str = "",
        name: str = "postroad.merged",
    ) -> None:
        self.address = TableAddress(str(to), format_, catalog, name)
        self.reading = Reading(form, key)
        self.base = base_schema(form, key)
        self.fails = fails
        self.table = create_derived(self.address, self.base, {"key": ",".join(key)})

    def step(self, messages: list[Told]) -> list[Merged]:
        loaded = self.table.load(["end/0"])
        outcomes, kinds = self.work(loaded, messages)
        self.commit(loaded, outcomes, kinds, loaded.notes.get("end/0", 0) + len(messages))
        return outcomes

    def work(self, loaded: Any, messages: list[Told]) -> tuple[list[Merged], dict[str, Any]]:
        known = {each.name: kind_of(each.type) for each in loaded.schema if each.name not in self.base.names}
        files = {
            group: tuple(those)
            for group, those in groupby(sorted(loaded.files.values()), key=lambda file: file.group)
        }
        work = Merging(self.address, "t", self.reading, BUCKETS, self.fails, known, files)
        changes = list(work.changes([_rows(messages)]))
        outcomes = [
            msgspec.json.decode(text, type=Merged)
            for batch in work.merge(changes)
            for text in batch.column("outcome").to_pylist()
        ]
        return outcomes, merged(known, [outcome.kinds for outcome in outcomes])

    def commit(self, loaded: Any, outcomes: list[Merged], kinds: dict[str, Any], end: int) -> None:
        added = [file for each in outcomes for file in each.added]
        removed = [file for each in outcomes for file in each.removed]
        self.table.commit(loaded, Change(with_kinds(self.base, kinds), {"end/0": end}, added, removed))


def _rows(messages: list[Told]) -> Any:
    columns = {
        "partition": [each[0] for each in messages],
        "offset": [each[1] for each in messages],
        "key": [each[2] for each in messages],
        "value": [each[3] for each in messages],
        "timestamp": [TIME_US + number for number, _ in enumerate(messages)],
    }
    arrays = [pa.array(cells, TYPES[name]) for name, cells in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


@pytest.mark.parametrize("format_", FORMATS)
def test_table_is_what_a_dict_would_be_after_each_step(format_: str, tmp_path: Path) -> None:
    merge = Merge(tmp_path, format_)
    chance = random.Random(7)
    expected: dict[bytes, dict[str, Any]] = {}
    offsets = [0, 0]
    for step in range(8):
        messages: list[Told] = []
        for _ in range(60):
            number = chance.randrange(40)
            partition = number % 2
            row = {"n": chance.randrange(1000), **({f"at{step // 3}": step} if chance.random() < 0.5 else {})}
            key, is_gone = b"k%d" % number, chance.random() < 0.3
            messages.append(
                (partition, offsets[partition], key, None if is_gone else msgspec.json.encode(row))
            )
            offsets[partition] += 1
            if is_gone:
                expected.pop(key, None)
            else:
                expected[key] = row
        chance.shuffle(messages)  # offsets say in which order they were
        merge.step(messages)
        found = read_merged(tmp_path, format_)
        rows = {row["message_key"]: row for row in found}
        assert len(rows) == len(found)
        assert rows.keys() == expected.keys()
        assert values_of(rows.values()) == sorted(expected.values(), key=str)
    assert merge.table.load(["end/0"]).notes == {"end/0": 480}


@pytest.mark.parametrize("format_", FORMATS)
def test_rows_are_known_by_several_columns(format_: str, tmp_path: Path) -> None:
    merge = Merge(tmp_path, format_, key=("id", "region"))
    merge.step(
        [
            (0, 0, None, b'{"id": 1, "region": "eu", "p": 5}'),
            (0, 1, None, b'{"id": 1, "region": "us", "p": 6}'),
        ]
    )
    merge.step(
        [(0, 2, None, b'{"id": 1, "region": "eu", "p": 7}'), (0, 3, b'{"id": 1, "region": "us"}', None)]
    )
    assert values_of(read_merged(tmp_path, format_)) == [{"id": 1, "region": "eu", "p": 7}]


@pytest.mark.parametrize("format_", FORMATS)
def test_what_was_read_before_somebody_else_committed_is_not_committed(format_: str, tmp_path: Path) -> None:
    merge = Merge(tmp_path, format_)
    loaded = merge.table.load()
    mine, kinds = merge.work(loaded, [(0, 0, b"k", b'{"a": 1}')])
    merge.step([(0, 0, b"k", b'{"a": 2}')])
    with pytest.raises(Conflict):
        merge.commit(loaded, mine, kinds, 1)
    assert values_of(read_merged(tmp_path, format_)) == [{"a": 2}]


def test_tombstone_before_any_row_is_nothing(tmp_path: Path) -> None:
    merge = Merge(tmp_path, "delta", key=("id",))
    merge.step([(0, 0, b'{"id": 1}', None)])
    assert read_merged(tmp_path, "delta") == []


def test_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    merge = Merge(tmp_path, "delta", "bytes")
    merge.step([(0, 0, b"a", b"\x00\xff"), (0, 1, b"b", b"x"), (0, 2, b"b", None)])
    assert [(row["message_key"], row["message_value"]) for row in read_merged(tmp_path, "delta")] == [
        (b"a", b"\x00\xff")
    ]


def test_bad_message_fails_the_step_or_leaves_what_was_good_before_it(tmp_path: Path) -> None:
    messages: list[Told] = [
        (0, 0, b"a", b'{"n": 1}'),
        (0, 1, b"a", b"no JSON"),
        (0, 2, None, b"{}"),
        (0, 3, b"b", b'{"n": 2}'),
    ]
    with pytest.raises(PipelineError, match=r"t/0 offset 2: the message has no key.*--bad-rows drop"):
        Merge(tmp_path / "one", "delta").step(messages)
    outcomes = Merge(tmp_path / "two", "delta", fails=False).step(messages)
    assert sum(outcome.bad for outcome in outcomes) == 2
    assert values_of(read_merged(tmp_path / "two", "delta")) == [{"n": 1}, {"n": 2}]


def test_files_without_the_keys_stay_and_small_ones_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = Merge(tmp_path, "delta")
    for step in range(4):
        merge.step([(0, 100 * step + n, b"%d-%d" % (step, n), b'{"n": 1}') for n in range(100)])
    assert len(merge.table.load().files) == BUCKETS
    monkeypatch.setattr("postroad.pipelines.tables.merged.SMALL_BYTES", 0)
    before = set(merge.table.load().files)
    merge.step([(0, 400, b"new", b'{"n": 1}')])
    assert before < set(merge.table.load().files), "no file has that key"
    merge.step([(0, 401, b"new", None)])
    assert set(merge.table.load().files) == before


def test_table_that_was_made_otherwise_is_refused(tmp_path: Path) -> None:
    Merge(tmp_path / "one", "delta", key=("id",))
    with pytest.raises(WrongTable, match="was made with key 'id', and now it is 'id,region'"):
        Merge(tmp_path / "one", "delta", key=("id", "region"))
    (tmp_path / "two").mkdir()
    (tmp_path / "two/file").touch()
    with pytest.raises(WrongTable, match="is not empty"):
        Merge(tmp_path / "two", "iceberg")
    with pytest.raises(WrongTable, match="holds a table in the format delta"):
        Merge(tmp_path / "one", "iceberg")


@pytest.mark.parametrize("format_", FORMATS)
def test_earlier_states_are_tidied_away(
    format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = Merge(tmp_path, format_)
    for offset in range(3):
        merge.step([(0, offset, b"k", b'{"n": 1}')])
    merge.table.tidy(3600)
    assert len(list(tmp_path.rglob("key-*/*.parquet"))) == 3, "younger than an hour"
    assert values_of(read_merged(tmp_path, format_)) == [{"n": 1}]
