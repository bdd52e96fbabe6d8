"""What jobs wrote in transactions that their tasks share, and what the checks need to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

PARTITIONS = 3
COPIES = 2  # of each row, in two partitions: what is torn is seen


@dataclass
class Written:
    """One attempt at a task of a run."""

    run: int
    number: int
    rows: int
    is_kept: bool = False  # the run was committed with what it wrote

    def outputs(self) -> Iterator[tuple[int, list[bytes]]]:
        """For each partition what goes there."""
        for partition in range(PARTITIONS):
            yield (
                partition,
                [
                    b"%d:%d:%d:%d" % (self.run, self.number, row, copy)
                    for row in range(self.rows)
                    for copy in range(COPIES)
                    if (row + copy) % PARTITIONS == partition
                ],
            )

    def values(self) -> list[bytes]:
        return [value for _, values in self.outputs() for value in values]


@dataclass
class Run:
    """One try to write a batch."""

    number: int
    batch: int
    attempts: list[Written] = field(default_factory=list)
    asked: float = inf  # when a commit was handed over
    committed: float = inf  # when it was acknowledged
    aborted: float = inf  # when an abort was acknowledged

    def attempt(self, rows: int) -> Written:
        made = Written(self.number, len(self.attempts), rows)
        self.attempts.append(made)
        return made

    def values(self) -> list[bytes]:
        """What is there for everybody if it was committed."""
        return [value for attempt in self.attempts if attempt.is_kept for value in attempt.values()]


@dataclass
class SharedHistory:
    runs: list[Run] = field(default_factory=list)
    checkpoint: int = 0  # the next batch, as drivers know it
    final: list[bytes] = field(default_factory=list)  # all that a read_committed reader found at the end
    done: set[int] = field(default_factory=set)  # batches of which somebody was told that they are committed

    def begin(self, batch: int) -> Run:
        run = Run(len(self.runs), batch)
        self.runs.append(run)
        return run

    def attempt_of(self, value: bytes) -> Written:
        run, number, *_ = map(int, value.split(b":"))
        return self.runs[run].attempts[number]
