"""Plain Parquet in directories `topic=…/date=…`, for readers that know no table format at all.

Whoever lists *.parquet sees each record once. What makes that so is a log of commits:

    _postroad/log/<version, 20 digits>.json   the commits; the newest says how the table is
    _postroad/staged/…                        files under other names than *.parquet, seen by nobody
    topic=…/date=…/<version>-<n>.parquet      what readers see

An entry of the log holds
    batches   query id → its last micro-batch         ends   {"topic": {"partition": offset}}
    kinds     the JSON columns                        remove paths that are no longer part of it
    add       [staged path, path that readers see]    topics {"topic": which topic of that name it was}

A commit is the creation of the next entry, which succeeds for one writer only (a hard link to a finished
file). Then it is carried out: what it removes is deleted, and what it adds is renamed from its staged name.
Whoever opens the table carries out the newest entry again, which changes nothing if it was done. So a crash
before the link leaves staged files that nobody sees, and a crash after it is made good by the next opener;
an entry before the newest was carried out, since its successor's writer did that first.

Removing comes before adding: during a compaction a reader may miss rows for a moment, and after a crash
in the midst of one until the table is next opened, but never sees one twice. Directories only: object stores
have neither links nor renames (Delta and Iceberg work there).
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from postroad.pipelines.errors import PipelineError, WrongTable
from postroad.pipelines.tables.compaction import Merging, compact
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.schema import Kind, with_json
from postroad.pipelines.tables.table import (
    Batch,
    Conflict,
    DataFile,
    Optimized,
    Recorded,
    Snapshot,
    Table,
    TableFile,
    TopicPartition,
)

_OURS: Final = "_postroad"
_LOG: Final = f"{_OURS}/log"
_STAGED: Final = f"{_OURS}/staged/"
_ENTRIES_KEPT: Final = 100  # one is needed; the others are for people who wonder what happened
_STAGED_KEPT_S: Final = 24 * 3600  # of what killed tasks left: no task takes that long

log = logging.getLogger(__name__)


class ManifestEntry(NamedTuple):
    """One commit, and how the table is after it."""

    version: int
    batches: dict[str, int]
    ends: dict[str, dict[str, int]]
    topics: dict[str, int]
    kinds: dict[str, Kind]
    add: list[tuple[str, str]]
    remove: list[str]


class Parquet(Table):
    format: ClassVar[str] = "parquet"
    file_suffix: ClassVar[str] = ".staged"
    files_below: ClassVar[str] = _STAGED

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        if location.directory is None:
            raise PipelineError(
                f"{location} is no directory, and plain Parquet needs one: take --format delta or iceberg"
            )
        self._root: Path = location.directory

    def is_there(self) -> bool:
        return bool(self.location.names(_LOG))

    def create(self) -> None:
        self.location.make_directory(_LOG)
        self._commit(ManifestEntry(0, {}, {}, {}, {}, [], []))

    def schema(self) -> Any:
        return with_json(self._newest().kinds)

    def snapshot(self, topics: Collection[str] = ()) -> Snapshot:
        entry, paths = self._seen()
        found = {_labels(path)["topic"] for path in paths}
        files = tuple(str(self._root / path) for path in paths)
        schema, topics = with_json(entry.kinds), tuple(sorted(found))
        return Snapshot(schema, str(self._root), files, topics, _topic_partitions(entry), entry.topics)

    def recorded(self, query: str, topics: Collection[str]) -> Recorded:
        entry = self._newest()
        ends = {
            topic_partition: end
            for topic_partition, end in _topic_partitions(entry).items()
            if topic_partition[0] in topics
        }
        return Recorded(entry, entry.batches.get(query), ends, entry.topics, entry.kinds)

    def commit(
        self, at: Recorded, batch: Batch, ends: Mapping[TopicPartition, int], new_columns: Mapping[str, Kind]
    ) -> None:
        before: ManifestEntry = at.handle
        all_ends = {topic: dict(known) for topic, known in before.ends.items()}
        for (topic, partition), end in ends.items():
            all_ends.setdefault(topic, {})[str(partition)] = end
        self._commit(
            before._replace(
                version=before.version + 1,
                batches={**before.batches, batch.query: batch.number},
                ends=all_ends,
                topics=before.topics | batch.topic_numbers,
                kinds={**before.kinds, **new_columns},
                add=_named(batch.files, before.version + 1),
                remove=[],
            )
        )

    def optimize(self, merging: Merging | None = None) -> Optimized:
        small = self.files()
        compact(self, small, self.schema(), self.swap, merging)
        self._forget()
        return Optimized(len(small), len(self._seen()[1]))

    def delete_dates_before(self, day: date) -> int:
        entry, paths = self._seen()
        old = [path for path in paths if _labels(path)["date"] < day.isoformat()]
        if old:
            self._commit(entry._replace(version=entry.version + 1, add=[], remove=old))
        return len(old)

    def files(self) -> list[TableFile]:
        _, paths = self._seen()
        return [TableFile(path, **_labels(path), bytes=self._size(path)) for path in paths]

    def swap(
        self, group: Sequence[TableFile], merged: DataFile | None, *, are_rows_same: bool = True
    ) -> bool:
        entry, paths = self._seen()
        if merged is not None and any(staged == merged.path for staged, _ in entry.add):
            return True
        remove = [small.path for small in group]
        if not set(remove).issubset(paths):
            return False
        version = entry.version + 1
        added = _named([merged] if merged is not None else [], version)
        self._commit(entry._replace(version=version, add=added, remove=remove))
        return True

    def _seen(self) -> tuple[ManifestEntry, list[str]]:
        """The table as it is, and the paths that readers see, of one moment: no commit came between."""
        while True:
            entry = self._newest()
            found = self._root.glob("topic=*/date=*/*.parquet")
            paths = sorted(path.relative_to(self._root).as_posix() for path in found)
            if self._entries()[-1] == _entry_name(entry.version):
                return entry, paths

    def _newest(self) -> ManifestEntry:
        """The table as it is, with its last commit carried out."""
        names = self._entries()
        if not names:
            raise WrongTable(f"no Parquet archive is at {self.location}")
        entry = ManifestEntry(**json.loads((self._root / _LOG / names[-1]).read_bytes()))
        self._carry_out(entry)
        return entry

    def _commit(self, entry: ManifestEntry) -> None:
        entries = self._root / _LOG
        entries.mkdir(parents=True, exist_ok=True)
        written = entries / f".{uuid.uuid4().hex}"
        try:
            with written.open("wb") as file:
                file.write(json.dumps(entry._asdict()).encode())
                file.flush()
                os.fsync(file.fileno())
            os.link(written, entries / _entry_name(entry.version))
        except FileExistsError:
            raise Conflict(f"version {entry.version} is there") from None
        finally:
            written.unlink(missing_ok=True)
        try:
            self._carry_out(entry)
        except OSError as error:
            # It took place all the same. Whoever opens the table next makes it good, or can't open it.
            log.warning("%s: commit %d is not seen yet: %s", self.location, entry.version, error)
        (entries / _entry_name(entry.version - _ENTRIES_KEPT)).unlink(missing_ok=True)

    def _carry_out(self, entry: ManifestEntry) -> None:
        for path in entry.remove:
            (self._root / path).unlink(missing_ok=True)
        for staged, path in entry.add:
            source, target = self._root / staged, self._root / path
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    source.rename(target)
                except FileNotFoundError:
                    continue  # somebody else who opened the table did it

    def _entries(self) -> list[str]:
        return [name for name in self.location.names(_LOG) if name.endswith(".json")]

    def _size(self, path: str) -> int:
        try:
            return (self._root / path).stat().st_size
        except FileNotFoundError:
            raise Conflict(f"{path} was compacted or deleted by somebody else") from None

    def _forget(self) -> None:
        """What killed tasks left behind."""
        before = time.time() - _STAGED_KEPT_S
        for file in self._root.glob(f"{_STAGED}**/*{self.file_suffix}"):
            with suppress(FileNotFoundError):
                if file.stat().st_mtime < before:
                    file.unlink()


def _named(files: Collection[DataFile], version: int) -> list[tuple[str, str]]:
    """Each file with the path that readers will see."""
    return [
        (file.path, f"topic={file.topic}/date={file.date}/{version:020}-{number}.parquet")
        for number, file in enumerate(files)
    ]


def _entry_name(version: int) -> str:
    return f"{version:020}.json"


def _labels(path: str) -> dict[str, str]:
    topic, day, _ = path.split("/")
    return {"topic": topic.removeprefix("topic="), "date": day.removeprefix("date=")}


def _topic_partitions(entry: ManifestEntry) -> dict[TopicPartition, int]:
    return {(topic, int(number)): end for topic, ends in entry.ends.items() for number, end in ends.items()}
