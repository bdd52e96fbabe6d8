"""What a mirror keeps about its work, at the target, where whoever starts it next finds it.

    topic  `postroad-mirrors`, one partition, compacted
    key    `SOURCE-CLUSTER-ID PREFIX WHAT`; the prefix is that of topics at the target
    value  JSON; none: it is forgotten

    WHAT
    `topic TOPIC`                   `id`, by which it is known from another of its name; `target_id`, that of
                                    the copy; `configs` that were seen
    `at TOPIC/PARTITION`            `at`: all of the source before it is copied, or needs no copy. `target`:
                                    all copies before this offset are in noted runs. `epoch`, and `count`: so
                                    many copies of this epoch lie before `target` (`partition`)
    `copies TOPIC/PARTITION FIRST`  `run`: [source, source's last, target, target's last] (`pairs`)
    `returns TOPIC/PARTITION FIRST` the same
    `group GROUP`                   `configs` of a subscription that were seen, or that it `is_new` there
    `rules topic TOPIC`             access rules about it that the source was `seen` to have, and those among
                                    them that a mirror has `brought` to the target, each as [principal, host,
                                    operation, permission] (`access_rules`)
    `rules group GROUP`             the same

Notes follow what they tell of: what was copied since the last ones is read from the target's log. So several
runs may write them, each of which tells the truth; and a note that is older than another does no harm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from postroad.client import Client, TopicPartition, offsets, topics
from postroad.client.append import append
from postroad.errors import TopicAlreadyExists, UnknownTopicOrPartition
from postroad.mirrors.reading import read
from postroad.wire.records import Record, encode_batch

TOPIC: Final = "postroad-mirrors"
PARTITION: Final = TopicPartition(TOPIC, 0)
BATCH_NOTES: Final = 1000  # some 150 bytes each: far below what a topic takes

RUNS: Final = ("copies ", "returns ")

Note = dict[str, Any]


class Notes:
    """Those of one mirror, by WHAT."""

    def __init__(self, target: Client, source_id: str, prefix: str) -> None:
        self._client = target
        self._prefix = f"{source_id} {prefix} "
        self._next = 0
        self.known: dict[str, Note] = {}  # without runs
        self._runs: dict[str, dict[str, list[int]]] = {}  # those among them that are runs, by partition

    async def prepare(self) -> None:
        """The topic is there, and all notes are known."""
        with suppress(TopicAlreadyExists):
            await topics.create(self._client, TOPIC, partitions=1, config={"cleanup.policy": "compact"})
        await self.refresh()

    async def refresh(self) -> None:
        """What others have noted is known, too."""
        end = (await offsets.latest(self._client, [PARTITION]))[PARTITION]
        async for records in read(self._client, PARTITION, self._next, end):
            for record in records:
                self._learn(record)
        self._next = max(self._next, end)

    async def put(self, notes: Mapping[str, Note | None]) -> None:
        """They are stored, on all replicas."""
        items = list(notes.items())
        for first in range(0, len(items), BATCH_NOTES):
            now_ms = self._client.runtime.clock.now_ms()
            records = [
                Record(number, now_ms, (self._prefix + what).encode(), _encoded(note))
                for number, (what, note) in enumerate(items[first : first + BATCH_NOTES])
            ]
            await append(self._client, PARTITION, encode_batch(records))
        for what, note in items:
            self._set(what, note)

    def runs(self, kind: str, topic_partition: TopicPartition) -> list[list[int]]:
        return list(self._runs.get(f"{kind} {topic_partition}", {}).values())

    def of_topic(self, topic: str) -> list[str]:
        """What is noted of its partitions."""
        found = [what for what in self.known if what.startswith(f"at {topic}/")]
        for kind, runs in self._runs.items():
            if kind.split(" ")[1].rpartition("/")[0] == topic:
                found += [f"{kind} {first}" for first in runs]
        return found

    def _learn(self, record: Record) -> None:
        key = (record.key or b"").decode(errors="replace")
        if key.startswith(self._prefix):
            note = None if record.value is None else json.loads(record.value)
            self._set(key.removeprefix(self._prefix), note)

    def _set(self, what: str, note: Note | None) -> None:
        kind, _, first = what.rpartition(" ")
        if kind.startswith(RUNS):
            runs = self._runs.setdefault(kind, {})
            runs.pop(first, None)
            if note is not None:
                runs[first] = note["run"]
        elif note is None:
            self.known.pop(what, None)
        else:
            self.known[what] = note


class NotesOfOthers:
    """What mirrors from another cluster have noted here, without runs: by prefix and WHAT."""

    def __init__(self, client: Client, source_id: str) -> None:
        self._client = client
        self._source_id = source_id
        self._next = 0
        self.known: dict[tuple[str, str], Note] = {}

    async def refresh(self) -> None:
        try:
            await self._client.topic(TOPIC)
        except UnknownTopicOrPartition:
            return
        end = (await offsets.latest(self._client, [PARTITION]))[PARTITION]
        async for records in read(self._client, PARTITION, self._next, end):
            for record in records:
                self._learn(record)
        self._next = end

    def _learn(self, record: Record) -> None:
        source_id, _, rest = (record.key or b"").decode(errors="replace").partition(" ")
        prefix, _, what = rest.partition(" ")
        if source_id != self._source_id or what.startswith(RUNS):
            return
        if record.value is None:
            self.known.pop((prefix, what), None)
        else:
            self.known[prefix, what] = json.loads(record.value)


async def copied_topics(client: Client, source_id: str) -> set[str]:
    """Topics of this cluster that are copies from that one under a name of their own."""
    notes = NotesOfOthers(client, source_id)
    await notes.refresh()
    topics_of = ((prefix, *what.split(" ")) for prefix, what in notes.known if prefix)
    return {prefix + words[1] for prefix, *words in topics_of if len(words) == 2 and words[0] == "topic"}


def _encoded(note: Note | None) -> bytes | None:
    return None if note is None else json.dumps(note).encode()
