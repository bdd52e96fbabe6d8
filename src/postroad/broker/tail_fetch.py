"""A consumer that has read everything and waits for more: one partition, no session.

Most fetches of a live system are of this kind, and the way from a commit to such a consumer is the
latency that people feel. So it is short: the read, the answer's few numbers, the send. Whatever is
out of the ordinary when it is woken (an error, much data, data that was not verified or was aborted) goes
the long way, `api/fetch`. Measured side by side, medians of 12 runs with one consumer and messages one by
one: without it the median latency is 16 % higher, and the node takes 18 % more processor time for a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call
from postroad.broker.partition import Partition
from postroad.broker.parts import HasLoop, HasSecurity
from postroad.errors import ApiError
from postroad.wire import fetch as codec

COPY_BYTES_MAX: Final = 16 * 1024  # up to here a read into memory is cheaper than a sendfile of its own
WAIT_MS_MAX: Final = 5 * 60 * 1000  # nobody waits longer, whatever was asked for


class Uses(HasLoop, HasSecurity, Protocol):
    """What a fetch that waits uses of the node."""


LongWay = Callable[["TailFetch"], None]


def waits_at_end(partition: Partition, repetition: codec.Repetition, offset: int) -> bool:
    """Whether this fetch finds nothing now and would be answered by the next commit."""
    request = repetition.request
    return (
        offset == partition.high_watermark
        and offset == partition.stable_offset
        and request.min_bytes == 1  # 0 does not wait
        and request.max_wait_ms > 0
        and repetition.wanted.leader_epoch in (-1, partition.leader_epoch)
    )


class TailFetch(Answer):
    """Parks itself with its connection and its partition; registered with both until it is answered."""

    __slots__ = (
        "_bytes_max",
        "_long_way",
        "_partition",
        "_security",
        "_timer",
        "allowed_at",
        "offset",
        "repetition",
    )

    def __init__(
        self,
        call: Call,
        partition: Partition,
        offset: int,
        bytes_max: int,
        node: Uses,
        long_way: LongWay,
    ) -> None:
        Answer.__init__(self, call.connection, call.correlation, call.flexible)
        repetition = call.connection.last_fetch
        assert repetition is not None
        self.repetition = repetition
        self.offset = offset
        self.allowed_at = call.connection.allowed_fetch  # of this topic: the connection may ask for others
        self._bytes_max = bytes_max
        self._partition = partition
        self._long_way = long_way
        self._security = node.security
        self._timer = node.loop.call_later(
            min(repetition.request.max_wait_ms, WAIT_MS_MAX) / 1000, self.expire
        )
        partition.readers[self] = None
        call.connection.park(self)

    def wake(self) -> None:
        """Something was committed."""
        partition, repetition = self._partition, self.repetition
        if not self.connection.allowed_fetch == self.allowed_at == self._security.revision:
            self.expire()
            return
        committed = repetition.request.isolation == codec.READ_COMMITTED
        try:
            found = (partition.read_stable if committed else partition.read)(self.offset, self._bytes_max)
            if committed and found is not None and partition.aborted(self.offset):
                self.expire()
                return
        except (ApiError, OSError):
            self.expire()
            return
        if found is None and not partition.closed:
            return
        if found is None or not found.verified or found.length > COPY_BYTES_MAX or found.file.fileno() < 0:
            self.expire()
            return
        records = found.file.read(found.position, found.length)
        self.abandon()
        high, stable = partition.high_watermark, partition.stable_offset
        self.complete(repetition.response(high, stable, partition.log.start_offset, records))

    def expire(self) -> None:
        """The time is over, or it is no simple matter: answer with what there is, the long way."""
        self.abandon()
        self._long_way(self)

    def abandon(self) -> None:
        self._timer.cancel()
        self._partition.readers.pop(self, None)
