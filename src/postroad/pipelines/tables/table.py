"""A table that keeps records, each once: what the three formats have in common.

Tasks write Parquet files that nobody sees yet. The driver then appends them all with one commit, which
also records this about itself:

    (query, batch)   the micro-batch that it is. Spark repeats a batch whose commit it has not heard of;
                     the table knows better, and the repetition changes nothing.
    ends             for each topic partition the offset up to which it is archived. They are the seam
                     for `history`, and where a query begins whose checkpoint was lost. A batch that would
                     go back behind them is refused: no offset is ever in a table twice.
    numbers          which topic of that name it was. One that was deleted and created anew has other
                     records under the same offsets: it is refused, too.

All are part of the commit, never a second step, so a kill at any moment leaves a batch wholly in the
table or wholly out of it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar

import msgspec

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.schema import Kind
from postroad.pipelines.tables.topics import made_anew

if TYPE_CHECKING:
    from postroad.pipelines.tables.compaction import Merging

TopicPartition = tuple[str, int]
T = TypeVar("T")

COMMIT_ATTEMPTS: Final = 10  # others commit, too: compaction, retention; each attempt looks again
TARGET_BYTES: Final = 128 * 1024 * 1024  # of a file after compaction: what the formats themselves aim at
KEPT_HOURS: Final = 7 * 24  # how long files that no reader should need any more are kept: the formats' own
ELSEWHERE: Final = "Archive the new topic into a directory of its own; this one keeps the old one"

log = logging.getLogger(__name__)


class Span(NamedTuple):
    """Offsets of one partition: from the first to the last, both included."""

    partition: int
    first: int
    last: int


class DataFile(NamedTuple):
    """A Parquet file with rows of one topic and one date. `path` is below the table's location."""

    path: str
    topic: str
    date: str
    rows: int
    bytes: int
    spans: tuple[Span, ...]
    kinds: dict[str, Kind]  # its JSON columns

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def of_json(cls, text: str) -> DataFile:
        return msgspec.json.decode(text, type=cls)


class TableFile(NamedTuple):
    """A file that is part of the table now. `path` is below the table's location."""

    path: str
    topic: str
    date: str
    bytes: int


class Reached(NamedTuple):
    """Up to where a task has read: offsets, not records, of which there may be none."""

    topic: str
    topic_number: int
    partition: int
    end: int

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def of_json(cls, text: str) -> Reached:
        return msgspec.json.decode(text, type=cls)


class Batch(NamedTuple):
    """What one micro-batch of one query adds."""

    query: str
    number: int
    files: tuple[DataFile, ...]
    reached: tuple[Reached, ...] = ()

    @property
    def topics(self) -> set[str]:
        return {file.topic for file in self.files} | {to.topic for to in self.reached}

    @property
    def topic_numbers(self) -> dict[str, int]:
        return {to.topic: to.topic_number for to in self.reached if to.topic_number}

    def ends(self) -> dict[TopicPartition, int]:
        """The offset after the last one of each topic partition."""
        ends = {topic_partition: span.last + 1 for topic_partition, span in self.spans().items()}
        for to in self.reached:
            topic_partition = to.topic, to.partition
            ends[topic_partition] = max(to.end, ends.get(topic_partition, 0))
        return ends

    def spans(self) -> dict[TopicPartition, Span]:
        """From the first to the last offset of each topic partition."""
        spans: dict[TopicPartition, Span] = {}
        for file in self.files:
            for span in file.spans:
                known = spans.get((file.topic, span.partition), span)
                first, last = min(known.first, span.first), max(known.last, span.last)
                spans[file.topic, span.partition] = Span(span.partition, first, last)
        return spans


class Snapshot(NamedTuple):
    """A table at one moment: what it holds belongs together."""

    schema: Any  # Arrow's, with all columns
    base: str  # the directory in which `topic=…/date=…` are
    files: tuple[str, ...]  # whole paths or URLs
    topics: tuple[str, ...]
    ends: dict[TopicPartition, int]
    topic_numbers: dict[str, int]


class Recorded(NamedTuple):
    """What a table says about itself at one moment; `handle` is the format's own view of that moment."""

    handle: Any
    batch: int | None  # the query's last micro-batch
    ends: dict[TopicPartition, int]
    topic_numbers: dict[str, int]
    kinds: dict[str, Kind]  # the table's JSON columns


class Optimized(NamedTuple):
    files_before: int
    files_after: int


class Conflict(Exception):
    """Somebody else committed first: look again."""


class Table(ABC):
    """A table at a location. Its methods reach the storage; the object itself holds no state."""

    format: ClassVar[str]
    has_partitions_in_files: ClassVar[bool] = False  # whether files repeat what their directory says
    file_suffix: ClassVar[str] = ".parquet"  # of files that tasks write
    files_below: ClassVar[str] = ""  # where they write them

    def __init__(self, location: Location) -> None:
        self.location = location

    @classmethod
    def at(cls, location: Location, catalog: str, name: str) -> Self:
        """`catalog` and `name` are for formats that know catalogues."""
        return cls(location)

    @abstractmethod
    def is_there(self) -> bool:
        """Whether a table of this format lies at the location."""

    @abstractmethod
    def create(self) -> None:
        """An empty table is there afterwards."""

    @abstractmethod
    def schema(self) -> Any:
        """The table's columns, as Arrow has them. WrongTable if they are no archive's."""

    @abstractmethod
    def snapshot(self, topics: Collection[str] = ()) -> Snapshot:
        """The table now. `topics`: ends are wanted of these, too, if no file of theirs is left."""

    @abstractmethod
    def recorded(self, query: str, topics: Collection[str]) -> Recorded:
        """What the table says of that query and of these topics now."""

    @abstractmethod
    def commit(
        self, at: Recorded, batch: Batch, ends: Mapping[TopicPartition, int], new_columns: Mapping[str, Kind]
    ) -> None:
        """All of it is in the table afterwards, or nothing is.

        Raises Conflict if what was recorded is no longer what the table says.
        """

    @abstractmethod
    def optimize(self, merging: Merging | None = None) -> Optimized:
        """Small files become large ones; files that nobody needs any more are deleted after a while.

        `merging` says who makes the large ones: without it this process.

        Raises Conflict if others commit all the time; what was done before that stays.
        """

    @abstractmethod
    def delete_dates_before(self, day: date) -> int:
        """Rows of earlier dates are gone for readers; how many files that took. Ends stay as they are."""

    @abstractmethod
    def files(self) -> list[TableFile]:
        """The files that the table consists of now."""

    @abstractmethod
    def swap(
        self, group: Sequence[TableFile], merged: DataFile | None, *, are_rows_same: bool = True
    ) -> bool:
        """In one commit the merged file, if there is one, takes the place of the others.

        False, and nothing is changed, if one of them is no longer in the table; True, too, if the merged
        file is in the table already. Raises Conflict. `are_rows_same`: what readers see does not change.
        """

    def ends(self, topics: Collection[str]) -> dict[TopicPartition, int]:
        """The offset after the last one archived, for each partition of these topics that has any."""
        return self.recorded("", topics).ends

    def append(self, batch: Batch, kinds: Mapping[str, Kind]) -> bool:
        """The batch is in the table, once; False if it was there before. `kinds`: its files' JSON columns."""
        for attempt in range(COMMIT_ATTEMPTS):
            at = self.recorded(batch.query, batch.topics)
            if at.batch is not None and at.batch >= batch.number:
                if attempt:
                    return True  # by our own commit, it may be: its answer was lost, and it met itself
                self.discard(batch.files)
                return False
            if (why := _misfit(at, batch, kinds)) is not None:
                self.discard(batch.files)
                raise PipelineError(f"{self.location}: {why}")
            ends = {
                topic_partition: max(end, at.ends.get(topic_partition, 0))
                for topic_partition, end in batch.ends().items()
            }
            new = {name: kind for name, kind in kinds.items() if name not in at.kinds}
            try:
                self.commit(at, batch, ends, new)
                return True
            except Conflict as conflict:
                log.info("%s has moved on (%s): looking again", self.location, conflict)
        raise PipelineError(f"{self.location} is written by too many others at once: stop some of them")

    def discard(self, files: Sequence[DataFile]) -> None:
        """Files that no commit refers to, nor one that is in doubt: those are left to `optimize`."""
        for file in files:
            self.location.delete(file.path)


def over_conflicts(work: Callable[[], T]) -> T:
    """Does it again where somebody else committed first; raises Conflict if others commit all the time."""
    for _ in range(COMMIT_ATTEMPTS - 1):
        try:
            return work()
        except Conflict:
            continue
    return work()


def _misfit(at: Recorded, batch: Batch, kinds: Mapping[str, Kind]) -> str | None:
    """Why the batch can't be part of the table; None if it can."""
    if (topic := made_anew(at.topic_numbers, batch.topic_numbers)) is not None:
        return f"{topic} was deleted and created anew since it was archived. {ELSEWHERE}"
    for (topic, partition), span in batch.spans().items():
        if span.first < (end := at.ends.get((topic, partition), 0)):
            return (
                f"{topic}/{partition} is archived up to offset {end} already, and offset {span.first} came "
                "again: another archive writes there. Let one do it, or give it a directory of its own"
            )
    known = {name.lower(): (name, kind) for name, kind in at.kinds.items()}
    for name, kind in kinds.items():
        if known.get(name.lower(), (name, kind)) != (name, kind):
            return f"another archive has just added the column {name}, of another type: start this one again"
    return None
