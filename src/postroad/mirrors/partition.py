"""One partition of the source, copied to one of the target: each message once, in order, whoever dies.

What is copied stands in the target's log and nowhere else: a copy names its original (`origins`), and copies
have the order of their originals. So a run that begins reads the log's end, from where notes stop, and knows
what the last one did. What the last one sent and nobody has stored yet may still come: therefore copies are
written by a producer whose id follows from both partitions, and each has its number as sequence number.

C1 the number of a copy is how many copies of the epoch lie before it in the log: two runs, one after the
   other or at the same time, give the same copy the same number. The log takes each number once.
C2 where the log takes a batch for one that it has, or for one out of order, the log is read again: then what
   it has was another's.
C3 the first batch of a run is read back. It might be taken for another's of as many messages, if the source
   was compacted between the two.
C4 an epoch begins at number 0, and is noted before its first batch. It begins where no note tells how many
   copies there are: at the very first, when the target has deleted what was copied since the last note, and
   when numbers fit nothing for long (somebody has copied by other means).

Messages that have been in the target before are not copied; where they lie there is kept (`pairs.Returns`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from postroad.client import Client, TopicPartition, offsets
from postroad.client.append import UNKNOWN_OFFSET, append
from postroad.client.producer import RECORD_OVERHEAD, SEQUENCE_MASK
from postroad.errors import InvalidProducerEpoch, MessageTooLarge, OutOfOrderSequence
from postroad.mirrors.errors import Halted, NotAsExpected
from postroad.mirrors.notes import Note, Notes
from postroad.mirrors.origins import ClusterPartition, Stamp, been_in, origins
from postroad.mirrors.pairs import Copies, Pair, Returns, Run, Translated, Unread, translate
from postroad.mirrors.reading import read
from postroad.wire.batch import NAMED_PRODUCERS
from postroad.wire.records import Record, encode_batch

BATCH_BYTES: Final = 512 * 1024  # half of what a topic accepts by default
BATCH_RECORDS: Final = (
    5_000  # a copy is decoded and encoded in this process: it must not hold up others for long
)
PENDING_BYTES_MAX: Final = 4 * 1024 * 1024
DETAILS_MAX: Final = 20  # runs of which the single pairs are remembered
STUCK_S: Final = (
    60.0  # numbers fit nothing for so long, while nobody else writes: it takes another epoch (C4)
)


class Ends(NamedTuple):
    """First and next offset of both logs, as they were when they were asked for."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


class Chunk(NamedTuple):
    """Records in order, and where to go on behind them."""

    records: Sequence[Record]
    next_offset: int
    bytes: int


class MirroredPartition:
    """`recover`, then `take` what was read and `write`. After an error: `recover` again."""

    def __init__(
        self,
        source: TopicPartition,
        target: TopicPartition,
        ids: tuple[str, str],
        clients: tuple[Client, Client],
        notes: Notes,
        compression: int = 0,
        accepts_loss: bool = False,
        target_topic_id: bytes | None = None,
    ) -> None:
        """`ids` and `clients` are those of the source and of the target.

        `target_topic_id`: nothing is written to another topic that has its name by now; MadeAnew tells of it.
        """
        self.source, self.target = source, target
        self._target_topic_id = target_topic_id
        self._source_client, self._client = clients
        self._notes = notes
        self._codec = compression
        self._accepts_loss = accepts_loss
        self._here = ClusterPartition(ids[0], *source)
        self._there = ClusterPartition(ids[1], *target)
        self._target_id = ids[1].encode()
        self._stamp = Stamp(self._here)
        self._producer_id = producer_id(self._here, self._there)
        self.copies, self.returns = Copies(), Returns()
        self.at = 0  # all of the source before it is copied, or needs no copy
        self.reading_at = 0  # what comes next to `take`
        self.pending: deque[Chunk] = deque()
        self.pending_bytes = 0
        self.written = 0  # messages, by this run
        self.skipped = 0  # of those that have been in the target
        self._epoch = self._count = 0
        self._target_end = 0  # of what is known of the target's log: all copies before it are in `copies`
        self._is_sure = False  # C3
        self._stuck_since: float | None = None
        self._noted: Note = {}
        self._details: dict[Run, list[Pair]] = {}

    # --- where it stands -----------------------------------------------------------------------

    async def recover(self, ends: Ends | None = None) -> None:
        """Reads what is copied. Afterwards it goes on at `reading_at`. Halted if it can't."""
        self.pending.clear()
        self.pending_bytes = 0
        ends = ends or await self._ends()
        note = self._notes.known.get(f"at {self.source}")
        self.copies = Copies([Run(*run) for run in self._notes.runs("copies", self.source)])
        self.returns = Returns([Run(*run) for run in self._notes.runs("returns", self.source)])
        self._details.clear()
        before = self._epoch, self._count
        self._noted = {}
        known = note or {"at": 0, "target": 0, "epoch": -1, "count": 0}
        self._epoch, self._count = known["epoch"], known["count"]
        if known["target"] > ends.target_end:
            raise Halted(
                f"{self.target} at the target ends at {ends.target_end}, and {self.source} was mirrored up "
                f"to {known['target']} there: it has lost messages"
            )
        await self._scan(max(known["target"], ends.target_start), ends.target_end)
        at = max(known["at"], self.copies.runs[-1].source_last + 1 if self.copies.runs else 0)
        if note is not None or self.copies.runs:
            at = self._checked(at, ends)
        at = max(at, ends.source_start)
        has_count = note is not None and known["target"] >= ends.target_start
        if not has_count or self._is_stuck((self._epoch, self._count) != before):
            await self._begin_epoch(self._epoch + 1, at)
        self.at = self.reading_at = at
        self._is_sure = False

    async def _ends(self) -> Ends:
        source_start, source_end = await _bounds(self._source_client, self.source)
        return Ends(source_start, source_end, *await _bounds(self._client, self.target))

    async def _scan(self, start: int, end: int) -> None:
        """Finds copies in the target's log."""
        async for records in read(self._client, self.target, start, end):
            for record in records:
                found = origins(record.headers)
                if found and found[-1].partition == self._here:
                    self._count += 1
                    self.copies.add(found[-1].offset, record.offset)
        self._target_end = max(start, end)

    async def _begin_epoch(self, epoch: int, at: int) -> None:
        """It is noted before anything is written in it (C4)."""
        self._epoch, self._count, self._stuck_since = epoch, 0, None
        self.at = at
        await self._notes.put(self.news())

    def _is_stuck(self, moved: bool) -> bool:
        """Whether numbers have fitted nothing for long, and nobody else has written meanwhile."""
        if self._stuck_since is None:
            return False
        now = asyncio.get_running_loop().time()
        if moved:
            self._stuck_since = now
        return now - self._stuck_since > STUCK_S

    def _checked(self, at: int, ends: Ends) -> int:
        """Halted where the source does not have what comes next."""
        if at > ends.source_end:
            raise Halted(
                f"{self.source} is mirrored up to offset {at}, and the source ends at {ends.source_end}: it "
                "has lost messages"
            )
        if at < ends.source_start and not self._accepts_loss:
            raise Halted(
                f"{self.source}: offsets {at} to {ends.source_start - 1} were deleted at the source before "
                "they were mirrored. To go on without them say --accept-loss"
            )
        return at

    # --- copying -------------------------------------------------------------------------------

    @property
    def wants_more(self) -> bool:
        return self.pending_bytes < PENDING_BYTES_MAX

    def take(self, records: Sequence[Record], next_offset: int) -> None:
        """What follows what was taken before."""
        size = sum(len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD for record in records)
        self.pending.append(Chunk(records, next_offset, size))
        self.pending_bytes += size
        self.reading_at = next_offset

    async def write(self) -> None:
        """The first chunk that was taken is stored at the target. After an error it has to recover."""
        chunk = self.pending[0]
        batch: list[Record] = []
        size = 0
        for record in chunk.records:
            if record.headers and been_in(record.headers, self._target_id):
                self._note_return(record)
                continue
            copy = record._replace(headers=self._stamp.headers(record))
            more = _size(copy)
            if batch and (size + more > BATCH_BYTES or len(batch) >= BATCH_RECORDS):
                await self._append(batch)
                batch, size = [], 0
            batch.append(copy)
            size += more
        if batch:
            await self._append(batch)
        self.at = chunk.next_offset
        self.pending.popleft()
        self.pending_bytes -= chunk.bytes

    def _note_return(self, record: Record) -> None:
        self.skipped += 1
        for origin in origins(record.headers):
            if origin.partition == self._there:
                self.returns.add(record.offset, origin.offset)

    async def _append(self, copies: Sequence[Record]) -> None:
        numbered = [copy._replace(offset=number) for number, copy in enumerate(copies)]
        batch = encode_batch(
            numbered,
            compression=self._codec,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._count & SEQUENCE_MASK,
        )
        try:
            appended = await append(self._client, self.target, batch, only_id=self._target_topic_id)
        except (OutOfOrderSequence, InvalidProducerEpoch) as error:
            self._stuck_since = self._stuck_since or asyncio.get_running_loop().time()
            raise NotAsExpected(str(error)) from None
        except MessageTooLarge:
            if len(copies) == 1:
                raise Halted(
                    f"{self.source}: the message at offset {copies[0].offset} is too large for "
                    f"{self.target}. Raise max.message.bytes of that topic at the target"
                ) from None
            half = len(copies) // 2
            await self._append(copies[:half])
            await self._append(copies[half:])
            return
        base, sources = appended.base_offset, [copy.offset for copy in copies]
        if base == UNKNOWN_OFFSET or not (
            self._is_sure or await self._is_at(base + len(copies) - 1, sources[-1])
        ):
            raise NotAsExpected(f"{self.target} has other messages than this run has sent")
        self._is_sure, self._stuck_since = True, None
        self._count += len(copies)
        self.written += len(copies)
        self.copies.add_all(sources, base)
        self._target_end = max(self._target_end, base + len(copies))

    async def _is_at(self, offset: int, source_offset: int) -> bool:
        """Whether the copy of that message lies there."""
        async for records in read(self._client, self.target, offset, offset + 1):
            for record in records:
                found = origins(record.headers)
                return bool(found) and (found[-1].partition, found[-1].offset) == (self._here, source_offset)
        return False

    # --- notes ---------------------------------------------------------------------------------

    def news(self) -> dict[str, Note | None]:
        """What is to be noted; nothing if nothing has changed. Call it between two writes."""
        notes: dict[str, Note | None] = {}
        for kind, pairs in (("copies", self.copies), ("returns", self.returns)):
            for run in pairs.runs if len(pairs.changed) > 1 else pairs.runs[-1:]:
                if run.source in pairs.changed:
                    notes[f"{kind} {self.source} {run.source}"] = {"run": list(run)}
            pairs.changed.clear()
        state = {"at": self.at, "target": self._target_end, "epoch": self._epoch, "count": self._count}
        if state != self._noted:
            notes[f"at {self.source}"] = self._noted = state
        return notes

    def note_all(self) -> None:
        """The last news were not stored: they are told again."""
        self._noted = {}
        for pairs in (self.copies, self.returns):
            pairs.changed.update(run.source for run in pairs.runs)

    def see_ends(self, target_end: int, source_end: int) -> None:
        """Where the logs ended, asked of the target first. If nothing was left to copy then, all copies that
        the target had are known: another run can't have copied what was not there."""
        if not self.pending and self.at >= source_end:
            self._target_end = max(self._target_end, target_end)

    def forget_before(self, target_start: int) -> dict[str, Note | None]:
        """Without runs that the target's log no longer has: what is to be noted of that."""
        gone = self.copies.forget_before(target_start), self.returns.forget_before(target_start)
        return {
            f"{kind} {self.source} {first}": None
            for kind, firsts in zip(("copies", "returns"), gone, strict=True)
            for first in firsts
        }

    # --- positions -----------------------------------------------------------------------------

    async def translate(self, position: int, start: int, end: int) -> Translated:
        """Where one goes on at the target who has read all before `position` at the source."""
        while True:
            try:
                return translate(min(position, self.at), self.copies, self.returns, start, end, self._details)
            except Unread as unread:
                if len(self._details) >= DETAILS_MAX:
                    self._details.clear()
                self._details[unread.run] = await self._read_run(unread.run, unread.of_copies)

    async def _read_run(self, run: Run, of_copies: bool) -> list[Pair]:
        """The pairs of a run that is not dense: of copies at the target, of returns at the source."""
        found: list[Pair] = []
        if of_copies:
            async for records in read(self._client, self.target, run.target, run.target_last + 1):
                for record in records:
                    origin = origins(record.headers)
                    if origin and origin[-1].partition == self._here:
                        found.append(Pair(origin[-1].offset, record.offset))
        else:
            async for records in read(self._source_client, self.source, run.source, run.source_last + 1):
                for record in records:
                    found += [
                        Pair(record.offset, origin.offset)
                        for origin in origins(record.headers)
                        if origin.partition == self._there
                    ]
        return found


def producer_id(source: ClusterPartition, target: ClusterPartition) -> int:
    """The same for every run."""
    name = "\0".join(map(str, (*source, *target))).encode()
    number = int.from_bytes(hashlib.sha256(b"postroad mirror\0" + name).digest()[:8], "big")
    return NAMED_PRODUCERS | (number & (NAMED_PRODUCERS - 1))


async def _bounds(client: Client, topic_partition: TopicPartition) -> tuple[int, int]:
    start = (await offsets.earliest(client, [topic_partition]))[topic_partition]
    return start, (await offsets.latest(client, [topic_partition]))[topic_partition]


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") + RECORD_OVERHEAD for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD + headers
