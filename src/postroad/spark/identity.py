"""As whom a task writes, so that what it repeats is stored once.

Kafka's idempotence (KIP-98) is used by name, over restarts of anybody: the producer id is made from what the
task is, not asked of the broker. Whoever runs the task again speaks as the same producer, with the same
sequence numbers, and the partition's log itself finds what it has already.

    producer id   1 << 61 | 61 bits of a hash of (writer, task, batch // 32,767)
    epoch         batch % 32,767
    sequences     from 0 for each partition of a topic

`writer` is a query's id and the option `writeId`, `batch` the number of the micro-batch. A batch that begins
with a new epoch makes the broker forget the sequences of the one before, and refuse that one from then on: it
was committed, or Spark would not have begun the next. The ids lie above all that brokers give out and below
those made from names (`wire.batch.NAMED_PRODUCERS`), which are forgotten sooner.

For a write that is not part of a stream both are options, `writeId` and `writeBatch`; without them the writer
is random: what Spark repeats within the job is stored once, and another job writes anew.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from postroad.wire.batch import CHOSEN_PRODUCERS

EPOCHS: Final = 32_767
"""Epochs of one producer id: they are 16 bits, signed, and Kafka holds the last one back."""

_BASE: Final = CHOSEN_PRODUCERS


class Identity(NamedTuple):
    producer_id: int
    epoch: int
    turn: int  # where rows without a key begin their round: another partition for each task and batch
    transactional_id: str | None = None  # it writes in a transaction


def of_task(writer: str, task: int, batch: int = 0) -> Identity:
    """The identity of one task of a write, the same for each of its attempts."""
    generation, epoch = divmod(batch, EPOCHS)
    return Identity(_BASE | _hash(writer, task, generation) & (_BASE - 1), epoch, task + batch)


def _hash(writer: str, task: int, generation: int) -> int:
    text = f"{task} {generation} {writer}"  # the numbers first: no two of them give one text
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
