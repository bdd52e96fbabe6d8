"""Gaps in a producer's sequence that may still be filled.

A producer has several requests in flight. When one of them is refused for a while (another node leads, the
disk is full, too few replicas), the next one may arrive after the reason has gone, and a batch is missing
before it. Both come again. OUT_OF_ORDER_SEQUENCE_NUMBER would be the wrong answer to that: librdkafka takes a
new producer epoch then and sends again whatever it has no answer for, on all partitions, also what is
stored (L3). So a gap is refused with an error that asks for the same batch again, for `PATIENCE_MS`. A
producer that really lost a batch hears of it after that.
"""

from __future__ import annotations

from typing import Final

from postroad.errors import ApiError, NotEnoughReplicas, OutOfOrderSequence
from postroad.wire.batch import CHOSEN_PRODUCERS

PATIENCE_MS: Final = 5_000  # a client that retries is back after a second, unless it is told to wait longer


class SequenceGaps:
    """For each producer that left a gap: the last one, and when it was first seen."""

    __slots__ = ("_gaps",)

    def __init__(self) -> None:
        self._gaps: dict[
            int, tuple[int, int, int]
        ] = {}  # epoch, the sequence that is missing, since when (ms)

    def refuse(self, producer_id: int, epoch: int, expected: int, first: int, now_ms: int) -> ApiError:
        """The error for a batch that begins at `first`, where the one at `expected` is missing.

        Ids that are not given by brokers belong to those who send one batch at a time: they hear it at once.
        """
        text = f"Sequence {first} came where {expected} was expected."
        if producer_id >= CHOSEN_PRODUCERS:
            return OutOfOrderSequence(text)
        known_epoch, missing, since_ms = self._gaps.get(producer_id, (epoch, expected, now_ms))
        if (known_epoch, missing) != (epoch, expected) or now_ms < since_ms:  # the clock was set back
            since_ms = now_ms
        self._gaps[producer_id] = epoch, expected, since_ms
        if now_ms - since_ms >= PATIENCE_MS:
            return OutOfOrderSequence(text)
        return NotEnoughReplicas(f"{text} Send again all that was refused, in order.")

    def forget(self, producer_id: int) -> None:
        """The producer is not known any more."""
        self._gaps.pop(producer_id, None)
