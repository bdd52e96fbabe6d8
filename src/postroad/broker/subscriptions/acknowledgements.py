"""The acknowledgements of one request: each partition's are taken as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from postroad.broker.access import OPEN, Access
from postroad.broker.partitions import TopicPartition
from postroad.broker.parts import HasEvidence, HasSubscriptions
from postroad.broker.subscriptions.queue import Queue
from postroad.errors import ApiError, InvalidRecordState, InvalidRequest, UnknownTopicOrPartition
from postroad.queues.acknowledgement import NOTHING_LATE
from postroad.queues.share_partition import AckBatch

RENEW: Final = 4


class Uses(HasEvidence, HasSubscriptions, Protocol):
    """What acknowledgements use of the node."""


def find_queue(node: Uses, access: Access, group: str, topic_partition: TopicPartition) -> Queue:
    """The queue whose messages are acknowledged. Raises what the client should be told."""
    if access is not OPEN:
        access.check_topic(topic_partition[0])
    queue = node.subscriptions.queue(group, *topic_partition)
    if queue is None:
        # Only where the ledger is known: else a message could be taken for gone, and come back.
        node.subscriptions.leaders.check_loaded(*topic_partition)
        raise UnknownTopicOrPartition()
    node.evidence.check(queue.partition)
    return queue


class Acknowledgements:
    """`errors` has an entry for each partition that was named when `done` is called."""

    def __init__(
        self,
        node: Uses,
        access: Access,
        group: str,
        member: str,
        renews: bool,
        done: Callable[[], None],
    ) -> None:
        self._access = access
        self.errors: dict[TopicPartition, ApiError | None] = {}
        self._node = node
        self._group = group
        self._member = member
        self._renews = renews
        self._done = done
        self._left = 0

    def take(
        self,
        named: Mapping[TopicPartition, Sequence[AckBatch]],
        lock_ms: int | None = None,
        delay_ms: int | None = None,
        late: frozenset[int] = NOTHING_LATE,
        reason: str = "",
    ) -> None:
        """`done` is called when all are durable or refused: perhaps before this returns. `late`: what
        counts without a lock, too, where nobody has the message. `reason`: of what is rejected."""
        self._left = len(named) + 1
        for topic_partition, batches in named.items():
            try:
                self._check(batches)
                queue = find_queue(self._node, self._access, self._group, topic_partition)
            except ApiError as error:
                self._replied(topic_partition, error)
                continue
            replied = partial(self._replied, topic_partition)
            queue.acknowledge(self._member, batches, replied, lock_ms, delay_ms, late, reason)
        self._count_down()

    def _check(self, batches: Sequence[AckBatch]) -> None:
        if not any(RENEW in types for _, _, types in batches):
            return
        if not self._renews:
            raise InvalidRequest("A lock is renewed by a request that says so (version 2).")
        if not self._node.subscriptions.settings(self._group).renew_enabled:
            raise InvalidRecordState("share.renew.acknowledge.enable is false for this group.")

    def _replied(self, topic_partition: TopicPartition, error: ApiError | None) -> None:
        self.errors[topic_partition] = error
        self._count_down()

    def _count_down(self) -> None:
        self._left -= 1
        if not self._left:
            self._done()
