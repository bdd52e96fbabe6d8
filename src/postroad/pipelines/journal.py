"""What pipelines note about themselves, in the cluster that they write to, so that they can be repeated.

    topic  `postroad-pipelines`, one partition, compacted
    key    which job it is: `replay orders-again`
    value  JSON: the whole state of the job before the step that it names is done, and `run`, which
           is random: who wrote it. None: the job is forgotten

A step is noted before it is done, and then done with producer ids that follow from job and step
(`delivery`). Whoever finds the note after a crash does the same step again, and what is stored already is
not stored twice. The next note says that the step before it is done.

Of two runs of one job that note a step at the same time the first in the log goes on; the other reads that
after its own note, and ends.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from postroad.pipelines.errors import PipelineError
from postroad.spark.cluster import Cluster
from postroad.wire.batch import CONTROL, walk
from postroad.wire.records import Record, decode_records, encode_batch

TOPIC: Final = "postroad-pipelines"
RUN: Final = "run"

Note = dict[str, Any]


class Overtaken(PipelineError):
    """Another run of the same job is under way; this one has left the rest to it."""


class Journal:
    """The notes whose keys begin with `prefix`. Not for several threads."""

    def __init__(self, cluster: Cluster, prefix: str, topic: str = TOPIC) -> None:
        """The topic is there afterwards, and all that is noted is read."""
        self._cluster = cluster
        self._prefix = prefix
        self._place = (topic, 0)
        self._run = uuid.uuid4().hex
        cluster.create_topic(topic, 1, {"cleanup.policy": "compact"}, exist_ok=True)
        self._next = cluster.earliest([self._place])[self._place]
        self._notes: dict[str, Note] = {}
        for key, note in self._news():
            self._learn(key, note)

    def get(self, key: str) -> Note | None:
        return self._notes.get(self._prefix + key)

    def all(self) -> dict[str, Note]:
        """Every note by its key, without the prefix."""
        return {key.removeprefix(self._prefix): note for key, note in self._notes.items()}

    def put(self, key: str, note: Mapping[str, Any] | None) -> None:
        """It is stored, on all replicas. Overtaken if another run has noted something for the key since."""
        self.put_all({key: note})

    def put_all(self, notes: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Several at once, all of them or none."""
        if not notes:
            return
        now_ms = time.time_ns() // 1_000_000
        records = [
            Record(number, now_ms, (self._prefix + key).encode(), self._encoded(note))
            for number, (key, note) in enumerate(notes.items())
        ]
        self._cluster.produce(self._place, bytes(encode_batch(records)))
        self._expect_own({self._prefix + key for key in notes})

    def _encoded(self, note: Mapping[str, Any] | None) -> bytes | None:
        return None if note is None else json.dumps({**note, RUN: self._run}).encode()

    def _expect_own(self, keys: set[str]) -> None:
        waiting = set(keys)
        for key, note in self._news():
            self._learn(key, note)
            if key not in waiting:
                continue
            if note is not None and note.get(RUN) != self._run:
                raise Overtaken(f"{key}: another run of it is under way. Let it end, or stop it first")
            waiting.discard(key)

    def _learn(self, key: str, note: Note | None) -> None:
        if note is None:
            self._notes.pop(key, None)
        else:
            self._notes[key] = note

    def _news(self) -> Iterator[tuple[str, Note | None]]:
        """What was noted since the last look, in order."""
        end = self._cluster.latest([self._place])[self._place]
        while self._next < end:
            fetched = self._cluster.fetch(self._place, self._next)
            before, self._next = self._next, fetched.next_offset
            for at, header in walk(fetched.data):
                if header.attributes & CONTROL:
                    continue
                for record in decode_records(fetched.data[at : at + header.size]):
                    if record.offset >= before and _is_ours(record, self._prefix):
                        yield _read(record)
            if self._next == before:
                return


def _is_ours(record: Record, prefix: str) -> bool:
    return (record.key or b"").startswith(prefix.encode())


def _read(record: Record) -> tuple[str, Note | None]:
    key = (record.key or b"").decode()
    if record.value is None:
        return key, None
    try:
        note = json.loads(record.value)
    except ValueError:
        note = None
    if not isinstance(note, dict):
        raise PipelineError(
            f"{TOPIC}: what is noted for {key!r} at offset {record.offset} is no note of ours"
        )
    return key, note
