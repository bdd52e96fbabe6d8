"""T2: a topic that was deleted never comes back, nor do its messages; one of the same name begins empty."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory
from simulator.workloads.recreated_history import ChangeKind, RecreatedHistory


def check(history: RecreatedHistory) -> Iterator[Violation]:
    yield from _check_ids(history)
    yield from _check_messages(history)
    for _, partition, offset in history.first_offsets:
        if offset:
            text = f"{history.topic}-{partition}: it begins at {offset}, and nothing was ever deleted there"
            yield Violation("T2", text)
            return


def _check_ids(history: RecreatedHistory) -> Iterator[Violation]:
    """An id that was seen before an acknowledged deletion is not seen after it."""
    for deletion in history.changes:
        if deletion.kind is not ChangeKind.DELETE:
            continue
        before = {look.topic_id for look in history.looks if look.told <= deletion.asked}
        for look in history.looks:
            if look.known >= deletion.told and look.topic_id is not None and look.topic_id in before:
                text = f"{history.topic}: it was deleted at {deletion.told:.3f} s, and is back"
                yield Violation("T2", text, look.told)
                return


def _check_messages(history: RecreatedHistory) -> Iterator[Violation]:
    """What was acknowledged in one incarnation is read in no later one.

    In an earlier one it may lie as well: its producer was not answered there, and sent it again.
    """
    homes = {
        told.value: topic_id
        for topic_id, incarnation in history.incarnations.items()
        for told in incarnation.acknowledged.values()
    }
    for topic_id, incarnation in history.incarnations.items():
        for value in _read(incarnation):
            home = homes.get(value, topic_id)
            if home != topic_id and history.created[home] < history.created[topic_id]:
                text = f"{history.topic}: {value[:24]!r} was read, and belongs to a topic that was deleted"
                yield Violation("T2", text)
                return


def _read(incarnation: LogHistory) -> Iterator[bytes]:
    yield from incarnation.final.values()
    for told in incarnation.seen.values():
        yield told.value
