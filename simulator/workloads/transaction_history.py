"""What workers did in transactions, and what the checks need to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from simulator.workloads.log_history import Position

OUT_PARTITIONS = 3
COPIES = 2  # of each input, in two partitions: what is torn is seen
NOWHERE = 9  # in the place of an input's partition: nobody commits an offset for it


@dataclass
class Attempt:
    """One transaction: it copies some inputs and commits their offsets."""

    number: int
    inputs: Sequence[Position]
    began: float
    asked: float = inf  # when a commit was handed over
    committed: float = inf  # when it was acknowledged
    aborted: float = inf  # when an abort was acknowledged

    def outputs(self) -> Iterator[tuple[int, list[bytes]]]:
        """For each partition of the output what goes there."""
        for partition in range(OUT_PARTITIONS):
            values = [
                b"%d:%d:%d:%d" % (self.number, *position, copy)
                for position in self.inputs
                for copy in range(COPIES)
                if (position.offset + copy) % OUT_PARTITIONS == partition
            ]
            if values:
                yield partition, values

    def values(self) -> list[bytes]:
        return [value for _, values in self.outputs() for value in values]


@dataclass
class Reading:
    """What a read_committed reader got of one partition of the output from an offset on, in its order."""

    partition: int
    begin: int
    seen: list[tuple[int, bytes]] = field(default_factory=list)  # offsets and values


@dataclass
class TransactionHistory:
    attempts: dict[int, Attempt] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    final: list[bytes] = field(default_factory=list)  # all that a read_committed reader found at the end
    places: dict[Position, bytes] = field(default_factory=dict)  # where in the output it found them
    offsets: dict[int, int] = field(default_factory=dict)  # of the group at the end, by partition

    def begin(self, inputs: Sequence[Position], now: float) -> Attempt:
        made = self.attempts[len(self.attempts)] = Attempt(len(self.attempts), inputs, now)
        return made

    def read(self, partition: int, begin: int) -> Reading:
        """Note that somebody reads the partition from this offset on."""
        self.readings.append(Reading(partition, begin))
        return self.readings[-1]

    def attempt_of(self, value: bytes) -> Attempt:
        return self.attempts[int(value.split(b":", 1)[0])]


def input_of(value: bytes) -> tuple[Position, int]:
    """The message that it is a copy of, and which copy."""
    _, partition, offset, copy = map(int, value.split(b":"))
    return Position(partition, offset), copy
