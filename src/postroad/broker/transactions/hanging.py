"""Transactions that are open in a partition, its ledger or a group, and known to no coordinator: aborted.

They come from coordinators that have lost what they knew, with a power cut and without sync or with damaged
files. Nobody else would ever end them, and read_committed consumers would wait for ever. A coordinator knows
of a partition or group before anything comes in there, until that has heard of the end. So one that is open
here, while no coordinator has it here, hangs for certain, if all coordinators say so.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.broker.subscriptions.pledges import end_pledges, open_pledges
from postroad.broker.transactions.markers import NO_COORDINATOR, Verdict, mark
from postroad.cluster.ids import pledges_id
from postroad.cluster.internal_topics import TRANSACTIONS_TOPIC
from postroad.errors import ApiError
from postroad.transactions.transaction import Partition as TopicPartition
from postroad.transactions.transaction import Producer

if TYPE_CHECKING:
    from postroad.broker.node import Node

LOOK_S: Final = 5.0
LEDGER: Final = "ledger"
PRODUCERS_MAX: Final = 100  # asked for at once: the others have their turn with the next look

log = logging.getLogger(__name__)

Open = dict[tuple[object, int], int]
"""By place and producer: where the transaction begins, or the epoch of its offsets or pledges."""


class HangingTransactions:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._seen: Open = {}  # what was open at the last look

    async def watch(self) -> None:
        """Look again and again, for as long as the node runs."""
        while True:
            await asyncio.sleep(LOOK_S)
            if TRANSACTIONS_TOPIC in self._node.image.topics:
                await self._look()

    async def _look(self) -> None:
        """Only what was open at the last look is asked for: nearly all transactions end sooner."""
        seen: Open = {}
        for partition in list(self._node.partitions):
            found = partition.log.producer_states.open
            if found and partition.follower is None:
                old = self._old((partition.topic_id, partition.index), found, seen)
                if old:
                    await self._heal_partition(partition, old)
        for where, found in open_pledges(self._node):
            old = self._old((LEDGER, where), found, seen)
            if old:
                await self._heal_pledges(where, old)
        for coordinator in self._node.groups.all():
            for group_id, producers in coordinator.groups.pending().items():
                old = self._old(group_id, producers, seen)
                if old:
                    await self._heal_group(group_id, old)
        self._seen = seen

    def _old(self, where: object, found: dict[int, int], seen: Open) -> dict[int, int]:
        seen.update({(where, producer_id): mark for producer_id, mark in found.items()})
        old = [each for each in found.items() if self._seen.get((where, each[0])) == each[1]]
        return dict(old[:PRODUCERS_MAX])

    async def _heal_partition(self, partition: Partition, old: dict[int, int]) -> None:
        node, where = self._node, (partition.topic_id, partition.index)
        try:
            node.evidence.check(partition)
            known = await node.transactions.transactions_anywhere(list(old), where)
            for producer_id, first in old.items():
                states = partition.log.producer_states
                if producer_id not in known and states.open.get(producer_id) == first:
                    log.warning(
                        "%s-%d: the transaction of producer %d is known to nobody, and is aborted",
                        partition.topic,
                        partition.index,
                        producer_id,
                    )
                    epoch, coordinator_epoch = states.epochs(producer_id)
                    verdict = Verdict(producer_id, epoch, False, coordinator_epoch, strict=False)
                    mark(node, where, verdict, _ignore)
        except ApiError as error:
            log.info("%s-%d: nobody can say yet what hangs: %s", partition.topic, partition.index, error)

    async def _heal_pledges(self, where: TopicPartition, old: dict[int, int]) -> None:
        node = self._node
        try:
            ledger = pledges_id(where[0]), where[1]
            known = await node.transactions.transactions_anywhere(list(old), ledger)
            pledged = dict(open_pledges(node)).get(where, {})
            for producer_id, epoch in old.items():
                if producer_id not in known and pledged.get(producer_id) == epoch:
                    log.warning(
                        "pledges of producer %d at %s-%d wait for nobody", producer_id, *_named(where)
                    )
                    end_pledges(node, where, Producer(producer_id, epoch + 1), commit=False, done=_ignore)
        except ApiError as error:
            log.info("pledges at %s-%d: nobody can say yet what hangs: %s", *_named(where), error)

    async def _heal_group(self, group_id: str, old: dict[int, int]) -> None:
        node = self._node
        try:
            known = await node.transactions.transactions_anywhere(list(old), group_id)
            for producer_id, epoch in old.items():
                pending = node.groups.find(group_id).groups.pending().get(group_id, {})
                if producer_id not in known and pending.get(producer_id) == epoch:
                    log.warning("group %s: offsets of producer %d wait for nobody", group_id, producer_id)
                    verdict = Verdict(producer_id, epoch, False, NO_COORDINATOR, strict=False)
                    node.transactions.complete_offsets(group_id, verdict, _ignore)
        except ApiError as error:
            log.info("group %s: nobody can say yet what hangs: %s", group_id, error)


def _named(where: TopicPartition) -> tuple[str, int]:
    return where[0].hex(), where[1]


def _ignore(answer: object) -> None:
    """If it could not be written it is open at the next look."""
