"""What pipelines note about themselves, in the cluster that they write to, so that they can be repeated.

    topic    `postroad-pipelines`, one partition, compacted
    key      which job it is: `replay orders-again`
    value    JSON: the whole state of the job before the step that it names is done. None: it is forgotten
    headers  `id`, which is random, and `after`: the id of the note that its writer knew of the key

A step is noted before it is done, and then done with producer ids that follow from job and step
(`delivery`). Whoever finds the note after a crash does the same step again, and what is stored already is
not stored twice. The next note says that the step before it is done.

Of two runs of one job that note a step at the same time the first in the log goes on. The other's note
comes after one that it did not know, so nobody heeds it; its writer reads that, and ends. Compaction would
keep it all the same, being the newest of its key: so its writer repeats the one that counts.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from postroad.pipelines.errors import PipelineError
from postroad.spark.cluster import Cluster
from postroad.wire.batch import CONTROL, walk
from postroad.wire.records import Record, decode_records, encode_batch

TOPIC: Final = "postroad-pipelines"
ID: Final = "id"
AFTER: Final = "after"

Note = dict[str, Any]


class Overtaken(PipelineError):
    """Another run of the same job is under way; this one has left the rest to it."""


class Journal:
    """The notes whose keys begin with `prefix`. Not for several threads."""

    def __init__(self, cluster: Cluster, prefix: str, topic: str = TOPIC) -> None:
        """The topic is there afterwards, and all that is noted is read."""
        self._cluster = cluster
        self._prefix = prefix
        self._topic_partition = (topic, 0)
        cluster.create_topic(topic, 1, {"cleanup.policy": "compact"}, exist_ok=True)
        self._next = cluster.earliest([self._topic_partition])[self._topic_partition]
        self._notes: dict[str, Note] = {}
        self._records: dict[str, Record] = {}  # of these notes
        self._hidden: set[str] = set()  # keys whose newest record is one that nobody heeds
        self._read_news()
        # As of now, and of what this run notes itself: what others note meanwhile it doesn't go by.
        self._known = {key: _header(record, ID) for key, record in self._records.items()}

    def get(self, key: str) -> Note | None:
        return self._notes.get(self._prefix + key)

    def all(self) -> dict[str, Note]:
        """Every note by its key, without the prefix."""
        return {key.removeprefix(self._prefix): note for key, note in self._notes.items()}

    def put(self, key: str, note: Mapping[str, Any] | None) -> None:
        """It is stored, on all replicas. Overtaken if another run has noted something for the key since."""
        self.put_all({key: note})

    def put_all(self, notes: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Several at once: all of them are stored, or none is."""
        if not notes:
            return
        records = [self._record(self._prefix + key, note) for key, note in notes.items()]
        self._append(records)
        late = self._read_news() & {_header(record, ID) for record in records}
        if not late:
            self._known |= {_key(record): _header(record, ID) for record in records}
            return
        keys = [_key(record) for record in records if _header(record, ID) in late]
        while hidden := [key for key in keys if key in self._hidden]:
            self._append([self._records[key] for key in hidden])
            self._read_news()
        raise Overtaken(f"{keys[0]}: another run of it is under way. Let it end, or stop it first")

    def _record(self, key: str, note: Mapping[str, Any] | None) -> Record:
        headers = [(ID, uuid.uuid4().hex.encode()), (AFTER, self._known.get(key))]
        value = None if note is None else json.dumps(note).encode()
        return Record(0, time.time_ns() // 1_000_000, key.encode(), value, headers)

    def _append(self, records: Sequence[Record]) -> None:
        numbered = [record._replace(offset=number) for number, record in enumerate(records)]
        self._cluster.produce(self._topic_partition, bytes(encode_batch(numbered)))

    def _read_news(self) -> set[bytes | None]:
        """The ids of notes that came too late."""
        return {_header(record, ID) for record in self._news() if not self._learn(record)}

    def _learn(self, record: Record) -> bool:
        """Whether it counts: it follows the note that is known, or is the same once more."""
        key = _key(record)
        known = self._records.get(key)
        if known is not None and _header(known, ID) not in (_header(record, ID), _header(record, AFTER)):
            self._hidden.add(key)
            return False
        self._hidden.discard(key)
        note = _note(record)
        if note is None:
            self._records.pop(key, None)
            self._notes.pop(key, None)
        else:
            self._records[key], self._notes[key] = record, note
        return True

    def _news(self) -> Iterator[Record]:
        """What was noted since the last look, in order."""
        end = self._cluster.latest([self._topic_partition])[self._topic_partition]
        while self._next < end:
            fetched = self._cluster.fetch(self._topic_partition, self._next)
            before, self._next = self._next, fetched.next_offset
            for at, header in walk(fetched.data):
                if header.attributes & CONTROL:
                    continue
                for record in decode_records(fetched.data[at : at + header.size]):
                    if record.offset >= before and _is_ours(record, self._prefix):
                        yield record
            if self._next == before:
                return


def _is_ours(record: Record, prefix: str) -> bool:
    return (record.key or b"").startswith(prefix.encode())


def _key(record: Record) -> str:
    return (record.key or b"").decode()


def _header(record: Record, name: str) -> bytes | None:
    return dict(record.headers).get(name)


def _note(record: Record) -> Note | None:
    if record.value is None:
        return None
    try:
        note = json.loads(record.value)
    except ValueError:
        note = None
    if not isinstance(note, dict):
        raise PipelineError(
            f"{TOPIC}: what is noted for {_key(record)!r} at offset {record.offset} is no note of ours"
        )
    return note
