"""A segment: one file of batches, exactly as on the wire, and how to find one in it.

File `<base offset, 20 digits>.log`: batches one after the other, nothing else (layout: `wire.batch`).
Valid is every batch whose length, magic and CRC hold and whose offset is not below the end of the one
before. The base offset is the log's end when the segment was made: its first batch has that
offset, or a higher one where compaction or a leader's gap took something away.

Crash. Bytes are only ever added at the end of the newest segment, so what a crash can tear lies above
the last sync; `recovery` cuts it there. Older segments never change in place: compaction writes
a new file and puts it in their place by a rename.

S1 `known` and the index only say where a batch begins; a look-up that lands elsewhere is detected.
S2 [own_from, size) was written by this process from checked batches and need not be verified.
"""

from __future__ import annotations

import contextlib
from itertools import chain, islice
from typing import Final, NamedTuple

from postroad.errors import ApiError, CorruptMessage
from postroad.log.aborted import AbortedTransaction, aborted_path, encode_aborted, read_aborted
from postroad.log.disk import Disk, File
from postroad.log.epochs import LeaderEpochs
from postroad.log.index import IndexEntry, SparseIndex, read_seal
from postroad.log.order import first_wrong, in_order, runs_on
from postroad.log.ranges import Ranges
from postroad.log.salvage import first_whole, is_whole, walk_over_damage
from postroad.log.scan import DamagedBatch, scan_unordered, walk, walk_unordered
from postroad.wire.batch import CONTROL, BatchHeader
from postroad.wire.marker import Marker, read_marker

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
KNOWN_MAX: Final = 256  # boundaries remembered: readers of one segment that follow one another
WRONG_ENTRIES_MAX: Final = 8  # beyond it the index is rebuilt as a whole
NO_TIME: Final = -1
DAMAGED_BYTES_MAX: Final = 16 << 20  # of a damaged batch are looked at: no length in it can be trusted


class Slice(NamedTuple):
    """Whole batches in a file. It stays readable as long as somebody holds it."""

    file: File
    position: int
    length: int
    verified: bool
    segment: Segment


class DamageSearch:
    """For what lies behind a damaged batch; `run` in a thread."""

    def __init__(self, segment: Segment, position: int, floor: int) -> None:
        self.segment = segment
        self.content = b""  # of the damaged batch
        self.following: tuple[int, BatchHeader] | None = None  # the first whole batch behind it
        self._position = position
        self._floor = floor

    def run(self) -> None:
        """Raises OSError."""
        segment, position = self.segment, self._position
        self.following = first_whole(segment.file, position, segment.size, self._floor, segment.end_offset)
        end = segment.size if self.following is None else self.following[0]
        self.content = segment.file.read(position, min(end - position, DAMAGED_BYTES_MAX))


class Segment:
    """The file's path may change (compaction renames it); its bytes below `size` never do."""

    __slots__ = (
        "_aborted",
        "_beyond",
        "_file",
        "_index",
        "_max_timestamp",
        "aborted_filed",
        "aborted_path",
        "aborted_saved",
        "base_offset",
        "closed",
        "damaged",
        "disk",
        "end_offset",
        "index_interval",
        "index_path",
        "known",
        "own_from",
        "path",
        "renamed",
        "size",
        "verified",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, size: int, end_offset: int) -> None:
        self.disk = disk
        self.base_offset = base_offset
        self.end_offset = end_offset  # of the last batch, or the next segment's base
        self.size = size
        self.path = log_path(directory, base_offset)
        self.index_path = index_path(directory, base_offset)
        self.aborted_path = aborted_path(directory, base_offset)
        self.aborted_filed = False  # there is a file of aborted transactions
        self.aborted_saved = True  # that file, or that there is none, tells of all of them
        self.index_interval = 4096
        self.known: dict[int, int] = {}  # offset → position of a batch that begins there
        self.verified = Ranges()
        self.own_from = size
        self.damaged: set[int] = set()  # positions of batches that failed verification
        self._beyond: dict[int, tuple[int, BatchHeader] | None] = {}  # the first whole one behind such
        self.closed = False  # nothing will be appended: its index may be thinned in memory
        self.renamed = True  # False while compaction has yet to rename its file
        self._file: File | None = None
        self._index: SparseIndex | None = None
        self._max_timestamp: int | None = None
        self._aborted: list[AbortedTransaction] | None = []  # None: they are in the file

    # --- the file

    @property
    def file(self) -> File:
        file = self._file
        if file is None:
            file = self._file = self.disk.open(self.path)
        return file

    def create(self) -> None:
        """Make the file, empty; one that a failed write left behind is emptied. Raises OSError."""
        self._file = self.disk.open(self.path, create=True)
        if self._file.size():
            self._file.truncate(0)
        self._index = SparseIndex(self.index_path, self.base_offset)
        self._max_timestamp = NO_TIME

    def cut_back(self) -> None:
        """Take away what a failed append left above `size`; nothing where no file could be opened for it."""
        if self._file is not None and self._file.size() != self.size:
            self._file.truncate(self.size)

    def adopt(self, file: File, index: SparseIndex, max_timestamp: int) -> None:
        """Compaction has written this file; until `renamed_to` its path is a passing one and it stays open.

        It is verified before it is read as any other: a damaged batch was copied as it was.
        """
        self.own_from = self.size
        self._file, self._index, self._max_timestamp = file, index, max_timestamp
        self.closed, self.renamed = True, False

    def renamed_to(self, path: str) -> None:
        """The file has its name. For a thread: the path is right before the file may be let go."""
        self.path = path
        with contextlib.suppress(OSError):  # it will be made from the segment when it is needed
            self.seal()
        self.renamed = True

    def release(self) -> None:
        """Let the descriptor and the index go; both come back on demand. Slices keep the file open."""
        if self.renamed:
            self._file = None
            self._index = None
            self.known.clear()
            if self.aborted_filed and self.aborted_saved:
                self._aborted = None

    def offset_at(self, position: int, offset: int) -> int:
        """Where the log ends if it is cut at this position, which `locate(offset)` gave."""
        following = next(walk(self.file, position, self.size), None)
        return offset if following is None else min(offset, following[1].base_offset)

    def let_file_go(self) -> None:
        """Close the file until somebody reads or writes: a thousand idle logs need no descriptor."""
        self._file = None

    def remove_files(self) -> None:
        self.disk.remove(self.index_path)
        self.disk.remove(self.aborted_path)
        self.disk.remove(self.path)

    # --- looking up

    def find(self, offset: int, max_bytes: int, limit: int) -> Slice | None:
        """Whole batches from the one with `offset` (or the next) on, below `limit`, a boundary.

        At most max_bytes, but at least one batch; None if there is none. Raises CorruptMessage.
        """
        position = self.known.get(offset)
        if position is None or (self.damaged and position in self.damaged):
            position = self.locate(offset)
        end = self.size if limit >= self.end_offset else self.boundary(limit)
        if position >= end:
            return None
        if end - position > max_bytes:
            end = self._cut(position, position + max_bytes, end)
        if self.damaged:
            end = self._before_damage(position, end)
        verified = position >= self.own_from or self.verified.cover(position, end)
        return Slice(self.file, position, end - position, verified, self)

    def boundary(self, offset: int) -> int:
        """The position where the batch that begins at `offset`, or the next one, is."""
        position = self.known.get(offset)
        return self.locate(offset) if position is None else position

    def locate(self, offset: int) -> int:
        """The position of the batch that holds `offset`, or of the first after it; `size` if none."""
        entry = self.index.before_offset(offset)
        last: int | None = None
        try:
            for position, header in walk(self.file, entry.position, self.size, entry.offset, self.end_offset):
                if position == entry.position and header.base_offset != entry.offset and position:
                    raise DamagedBatch(position, "is not the one in the index")
                if header.last_offset >= offset:
                    if position not in self.damaged:
                        self.remember(header.base_offset, position)
                    elif self._reaches(offset, position, entry):
                        return self.locate(offset)
                    return position
                last = position
        except DamagedBatch as damage:
            if last is None and entry.position:
                self._distrust(entry)
            else:
                self._pass_over(damage, last, entry, offset)
            return self.locate(offset)
        return self.size

    def _pass_over(self, damage: DamagedBatch, last: int | None, entry: IndexEntry, offset: int) -> None:
        """What lies behind the damage can be found from here on. Raises it again if `offset` does not.

        `last` is the batch before it: a wrong length there leads to where no batch is.
        """
        holds = last is None or is_whole(self.file, last, damage.position)
        if not self._reaches(offset, damage.position if holds or last is None else last, entry):
            raise damage

    def _reaches(self, offset: int, damaged: int, entry: IndexEntry) -> bool:
        """Whether the offset lies behind a damaged batch, where it can be found from here on."""
        if damaged in self._beyond:
            following = self._beyond[damaged]
        else:
            following = first_whole(self.file, damaged, self.size, entry.offset, self.end_offset)
            if following is not None or self.closed:  # consumers ask again and again, and this takes long
                self._beyond[damaged] = following
        if following is None or following[1].base_offset > offset:
            return False
        return self.remember_beyond(*following)

    def remember_beyond(self, position: int, header: BatchHeader) -> bool:
        """This batch can't be reached by walking, for the one before it is damaged; whether it can be now."""
        return self.index.insert(header.base_offset, position, self.max_timestamp)

    def before_time(self, time: int) -> IndexEntry:
        """Where to begin walking to find a batch of that time: all before it are older."""
        while True:
            entry = self.index.before_time(time)
            if entry.position in (0, self.size):
                return entry
            header = next(walk(self.file, entry.position, self.size), None)
            if header is not None and header[1].base_offset == entry.offset:
                return entry
            self._distrust(entry)

    def _cut(self, position: int, stop: int, end: int) -> int:
        """The last boundary in (position, stop], or the end of the one batch that is longer."""
        entry = self.index.before_position(stop)
        start, floor = (position, 0) if entry.position <= position else (entry.position, entry.offset)
        try:
            for at, header in walk(self.file, start, end, floor, self.end_offset):
                if at == entry.position and at > position and header.base_offset != entry.offset:
                    raise DamagedBatch(at, "is not the one in the index")
                after = at + header.size
                if after > stop:
                    if at > position:
                        self.remember(header.base_offset, at)
                        return at
                    self.remember(header.next_offset, after)
                    return after
        except DamagedBatch as damage:
            if damage.position == position:
                raise
            if damage.position == start:
                self._distrust(entry)
                return self._cut(position, stop, end)
            return damage.position  # what lies before the damage is still served
        return end

    def _before_damage(self, position: int, end: int) -> int:
        if position in self.damaged:
            raise CorruptMessage(f"The batch at byte {position} of {self.path} is damaged.")
        return min([end, *(at for at in tuple(self.damaged) if at > position)])

    def remember(self, offset: int, position: int) -> None:
        if len(self.known) >= KNOWN_MAX:
            self.known.clear()
        self.known[offset] = position

    # --- aborted transactions

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Those whose marker lies in the segment, in order. Raises OSError."""
        if self._aborted is None:
            found = read_aborted(self.disk, self.aborted_path)
            if found is None:
                found = self._find_aborted()
            self._aborted = [entry for entry in found if self.base_offset <= entry.marker < self.end_offset]
        return self._aborted

    @aborted.setter
    def aborted(self, entries: list[AbortedTransaction]) -> None:
        """They are what the batches tell, whatever is in the file."""
        self._aborted = entries
        self.aborted_saved = not (entries or self.aborted_filed)

    def add_aborted(self, entries: list[AbortedTransaction]) -> None:
        """Their markers were written to the segment."""
        self.aborted.extend(entries)
        self.aborted_saved = False

    def trust_aborted_file(self) -> None:
        """There is a file of aborted transactions; it is read when it is needed."""
        self._aborted, self.aborted_filed, self.aborted_saved = None, True, True

    def save_aborted(self) -> None:
        """Write them to their file, durably. Raises OSError."""
        content = encode_aborted(self.aborted)
        self.disk.replace(self.aborted_path, content)
        self.note_aborted_saved(content)

    def note_aborted_saved(self, content: bytes) -> None:
        """This is in the file; it tells all unless there came more since."""
        self.aborted_filed = True
        self.aborted_saved = content == encode_aborted(self.aborted)

    def _find_aborted(self) -> list[AbortedTransaction]:
        """As the markers in the segment tell; what was stable then can only be estimated."""
        found = []
        for position, size, header in walk_over_damage(
            self.file, 0, self.size, self.base_offset, self.end_offset
        ):
            marker = self.marker_at(position, size) if header and header.attributes & CONTROL else None
            if header and marker and not marker.commit and marker.first_offset >= 0:
                first = marker.first_offset
                found.append(AbortedTransaction(header.producer_id, first, header.base_offset, first))
        return found

    def marker_at(self, position: int, size: int) -> Marker | None:
        """What the control batch there says; None if it can't be read."""
        try:
            return read_marker(self.file.read(position, size))
        except ApiError:
            return None

    # --- verifying

    def verify(self, file: File, position: int, end: int, epochs: LeaderEpochs) -> None:
        """Thread-safe. Raises CorruptMessage; later reads then end before the damaged batch.

        Each CRC holds, and offsets and epochs fit those of the batches before and after.
        """
        entry, before = self._lead_up(file, position)
        after = self._headers(file, end, self.size, 1)
        try:
            batches = chain(before, scan_unordered(file, position, end), after)
            if not runs_on(batches, entry.offset, self.end_offset, epochs):
                batches = chain(before, scan_unordered(file, position, end), after)
                placed = in_order(batches, entry.offset, self.end_offset)
                wrong = first_wrong(placed, epochs, position, end)
                if wrong is not None:
                    raise wrong
        except DamagedBatch as damage:
            self.damaged.add(damage.position)
            raise

    def _lead_up(self, file: File, position: int) -> tuple[IndexEntry, list[tuple[int, BatchHeader]]]:
        """An entry that is right, and the batches from there up to the position."""
        entry = self.index.before_position(max(position - 1, 0))  # with at least one batch before it
        first = self._headers(file, entry.position, self.size, 1)
        if entry.position and first and first[0][1].base_offset != entry.offset:  # one of the two is wrong
            entry = IndexEntry(self.base_offset, 0, NO_TIME)
        before: list[tuple[int, BatchHeader]] = []
        with contextlib.suppress(DamagedBatch):  # they lead up to it as far as they hold
            before.extend(scan_unordered(file, entry.position, position))
        return entry, before

    def _headers(
        self, file: File, position: int, end: int, count: int | None = None
    ) -> list[tuple[int, BatchHeader]]:
        """Those from the position on, as far as they can be read."""
        found: list[tuple[int, BatchHeader]] = []
        with contextlib.suppress(DamagedBatch):
            found.extend(islice(walk_unordered(file, position, end), count))
        return found

    # --- the index

    @property
    def index(self) -> SparseIndex:
        if self._index is None:
            self.load_index()
        assert self._index is not None
        return self._index

    def load_index(self) -> None:
        """From its file, and what that lacks from the segment. Raises OSError; nothing has changed then."""
        index = SparseIndex(self.index_path, self.base_offset)
        index.load(self.disk, thin=self.closed)
        index.truncate(self.size + 1)
        if index.last().offset != self.end_offset:  # a seal leads to no batch that could tell
            index.truncate(self.size)
        self._complete(index)
        self._index = index

    def renew_index(self, position: int) -> None:
        """Entries above the position are made anew, durably: they may tell of batches that are lost."""
        index = SparseIndex(self.index_path, self.base_offset)
        index.load(self.disk, thin=False)
        index.truncate(min(position, self.size) + 1)
        self._complete(index)
        self._index = index
        try:
            index.replace(self.disk)
        except OSError:  # the disk is full: no index is better than a wrong one
            self.disk.remove(self.index_path)

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, NO_TIME if there is none."""
        if self._max_timestamp is None:
            seal = (
                read_seal(self.disk, self.index_path)
                if self.size
                else IndexEntry(self.base_offset, 0, NO_TIME)
            )
            if seal is not None and seal.position == self.size:
                self._max_timestamp = seal.time
            else:
                self.load_index()
        assert self._max_timestamp is not None
        return self._max_timestamp

    @max_timestamp.setter
    def max_timestamp(self, time: int) -> None:
        self._max_timestamp = time

    def seal(self) -> None:
        """The segment is closed: the index ends with where it ends. Raises OSError as `save` does."""
        self.closed = True
        if self.size:  # an empty one needs no index, and no entry begins at its very beginning
            self.index.add(self.end_offset, self.size, self.max_timestamp)
            self.index.save(self.disk)

    def _complete(self, index: SparseIndex) -> None:
        """Walk from the last entry to the end of the file, around damaged batches."""
        interval, last = self.index_interval, index.last()
        due, time = last.position + interval, last.time
        batches = walk_over_damage(self.file, last.position, self.size, last.offset, self.end_offset)
        for position, _, header in batches:
            if header is None:
                if position == last.position and len(index.offsets):
                    index.clear()
                    self._complete(index)
                    return
                due = position  # the next one can't be reached by walking
                continue
            if position >= due:
                index.add(header.base_offset, position, time)
                due = position + interval
            time = max(time, header.max_timestamp)
        self._max_timestamp = time

    def _distrust(self, entry: IndexEntry) -> None:
        """The entry leads to no batch of its offset: either is damaged, so go by the one before it."""
        self.index.forget(entry)
        if self.index.forgotten > WRONG_ENTRIES_MAX:
            self.index.clear()
            self._complete(self.index)


def log_path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}{LOG_SUFFIX}"


def index_path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}{INDEX_SUFFIX}"
