"""F1: who asks for an offset gets the message that lies there; who asks for a time, the first one since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from postroad.client.metadata import TopicPartition
from postroad.wire.records import Record
from simulator.violation import Violation
from simulator.workloads.found import Found


def check(found: Sequence[Found], records: Mapping[TopicPartition, Sequence[Record]]) -> Iterator[Violation]:
    """`records`: all that lies there, in order."""
    for each in found:
        came, wanted = each.by_offset, each.wanted
        if came is None or (came.offset, came.value) != (wanted.offset, wanted.value):
            got = "nothing" if came is None else f"{came.offset}"
            yield Violation("F1", f"{each.part}: {wanted.offset} was asked for, and {got} came")
            return
        first = next(record for record in records[each.part] if record.timestamp >= wanted.timestamp)
        if each.by_time != first.offset:
            text = (
                f"the first message since {wanted.timestamp} is {first.offset}, and {each.by_time} was said"
            )
            yield Violation("F1", f"{each.part}: {text}")
            return
