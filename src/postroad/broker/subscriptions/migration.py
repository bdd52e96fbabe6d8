"""`migrate`: what older versions kept in `__share_group_state` moves to the ledgers of the partitions.

It happens once, at the first start of a version that has ledgers, before anybody is served:

    1. every record of the old topic is read,
    2. the coordination store names a ledger for each partition that a subscription has met,
    3. each ledger gets all that is known of its partition, in one batch, and is synced,
    4. the old topic is deleted.

A crash before the last step leaves the old topic as it was, and all is done again: what a ledger is told
twice changes nothing. Where a log can't be read or written the node does not start: what was acknowledged
would be delivered again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.joining import patiently
from postroad.broker.own_batch import append_own
from postroad.broker.partition import Partition
from postroad.broker.partitions import TopicPartition
from postroad.broker.record_log import RecordLog
from postroad.broker.replies import replied
from postroad.broker.subscriptions.replay import Replay
from postroad.cluster import controller
from postroad.cluster.image import Topic
from postroad.cluster.internal_topics import SHARE_STATE_TOPIC
from postroad.errors import StorageFailed
from postroad.queues.ledger import Ledger
from postroad.queues.update import encode_key, encode_update
from postroad.wire.records import Record

if TYPE_CHECKING:
    from postroad.broker.node import Node

log = logging.getLogger(__name__)


async def migrate(node: Node) -> None:
    """Do it, if there is an old topic. Raises what reading and writing raise; the old topic is left then."""
    old = node.image.topics.get(SHARE_STATE_TOPIC)
    if old is None:
        return
    ledgers = await _read(node, old)
    wanted = [where for where in ledgers if where[0] in node.image.topics_by_id]
    await patiently(partial(_name_ledgers, node, wanted), node.settings.cluster.lease_length_ms)
    for where in wanted:
        await _write(node, _ledger(node, where), ledgers[where])
    await patiently(partial(_delete, node), node.settings.cluster.lease_length_ms)
    log.info("the state of subscriptions on %d partitions lies beside their messages now", len(wanted))


async def _read(node: Node, old: Topic) -> dict[TopicPartition, list[Ledger]]:
    found: dict[TopicPartition, list[Ledger]] = {}
    for index in range(len(old.partitions)):
        replay = Replay(lambda offset, update: update)
        partition = node.partitions.lead(old.id, index)
        await replay.run(RecordLog(partition, node.clock, node.turn), node.slow_workers)
        for key, kept in replay.found.items():
            found.setdefault((key.topic_id, key.partition), []).append(kept.ledger)
    return found


async def _name_ledgers(node: Node, wanted: Iterable[TopicPartition]) -> None:
    for topic_id in {topic_id for topic_id, _ in wanted}:
        indexes = {index for of_topic, index in wanted if of_topic == topic_id}
        await node.topics.decide(partial(controller.add_ledgers, topic_id=topic_id, indexes=indexes))


def _ledger(node: Node, where: TopicPartition) -> Partition:
    partition = node.partitions.lead(*where)
    if partition.ledger is None:
        raise StorageFailed(f"The ledger of {partition.topic}-{partition.index} can't be opened.")
    return partition


async def _write(node: Node, messages: Partition, ledgers: list[Ledger]) -> None:
    """All of it in one batch, and safe whatever the flush mode is: the old topic goes."""
    partition = messages.ledger
    assert partition is not None
    now_ms = node.clock.now_ms()
    records: list[Record] = []
    for ledger in ledgers:
        correction = ledger.ending_at(messages.log.end_offset)
        if correction is not None:  # its messages were lost in the crash before this start
            ledger.apply(correction)
        key = encode_key(ledger.key)
        records += (
            Record(number, now_ms, key, encode_update(part))
            for number, part in enumerate(ledger.snapshots(), len(records))
        )
    await replied(partial(append_own, partition, node.turn, records, now_ms))
    while partition.log.synced_offset < partition.log.written_offset:
        if partition.log.failed is not None:
            raise partition.log.failed
        node.flusher.request(partition)
        await partition.quiet()


async def _delete(node: Node) -> None:
    if SHARE_STATE_TOPIC in node.image.topics:
        decision = partial(controller.delete_topic, name=SHARE_STATE_TOPIC, internal=True)
        await node.topics.decide(decision, done=lambda image: SHARE_STATE_TOPIC not in image.topics)
