"""Peer (10004), version 0: what other nodes of the cluster ask about the partitions and groups of this one.

Postroad's own, between nodes. Not advertised (see `wire.peer`). Each question is answered with what lies
here: a partition that another node leads is answered with NOT_LEADER_OR_FOLLOWER, and nobody else is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import (
    HasElections,
    HasEvidence,
    HasGroups,
    HasHandover,
    HasImage,
    HasPartitions,
    HasSubscriptions,
    HasTopics,
    HasTransactions,
)
from postroad.broker.replies import replied
from postroad.broker.subscriptions.orders import Order
from postroad.broker.subscriptions.pledges import end_pledges
from postroad.broker.transactions.markers import Verdict
from postroad.errors import ApiError, ClusterAuthorizationFailed, NotLeaderOrFollower
from postroad.queues.update import Key
from postroad.security.resources import Operation
from postroad.transactions.transaction import Producer
from postroad.wire import peer as codec
from postroad.wire.peer import PartitionResult, PeerAnswer, TopicPartition

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.CLUSTER_ACTION)
ADVERTISED: Final = False

FOLLOW_S: Final = 3.0  # a node that is further behind the coordination store says so instead


class Uses(
    HasElections,
    HasEvidence,
    HasGroups,
    HasHandover,
    HasImage,
    HasPartitions,
    HasSubscriptions,
    HasTopics,
    HasTransactions,
    Protocol,
):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    question = codec.decode_request(call.body, call.version)
    if isinstance(question, codec.CompleteOffsets):
        try:
            node.transactions.admit_peer(call.client_id or "", call.connection.serial)
        except ApiError as error:
            return codec.encode_response(PeerAnswer(error.code, str(error)), call.version)
    return _answer(node, question, call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(PeerAnswer(error.code, str(error)), call.version)


async def _answer(node: Uses, question: codec.AnyQuestion, version: int) -> bytes:
    try:
        answer = await _find(node, question)
    except ApiError as error:
        answer = PeerAnswer(error.code, str(error))
    return codec.encode_response(answer, version)


async def _find(node: Uses, question: codec.AnyQuestion) -> PeerAnswer:
    subscriptions = node.subscriptions
    match question:
        case codec.EnsureLedgers():
            return await _ensure(node, question)
        case codec.FindPositions(group, partitions):
            return await _each(partitions, partial(_position, node, group))
        case codec.ResetLedger(group, where, start, epoch, number):
            subscriptions.orders.admit(group, Order(epoch, number))
            await subscriptions.leaders.reset(Key(group, *where), start)
            return PeerAnswer()
        case codec.RemoveLedgers(group, partitions, epoch, number):
            subscriptions.orders.admit(group, Order(epoch, number))
            return await _each(partitions, partial(_remove, node, group))
        case codec.FindHeld(group, topic_id, all_known):
            held = subscriptions.leaders.held(group, topic_id, all_known=all_known)
            return PeerAnswer(partitions=[key[1:] for key in held])
        case codec.FindGroups():
            return PeerAnswer(groups=subscriptions.leaders.groups())
        case codec.FindCommitted(coordinators, topic, index, below):
            node.groups.check_knows(coordinators)
            return PeerAnswer(offset=node.groups.committed_below(topic, index, below))
        case codec.FollowStore(revision):
            await node.topics.reach(revision, FOLLOW_S)
            await node.handover.finish(FOLLOW_S)
            return PeerAnswer(revision=node.image.revision)
        case codec.HandOver(partitions):
            outcomes = await node.elections.hand_over(partitions)
            errors = [outcomes[where] for where in partitions]
            return PeerAnswer(results=[_result(error) for error in errors])
        case codec.FindLogEnds(partitions):
            ends = [node.elections.log_end(where) for where in partitions]
            return PeerAnswer(results=[PartitionResult(log_end=end) for end in ends])
        case (
            codec.VerifyTransaction()
            | codec.JoinTransaction()
            | codec.CompleteOffsets()
            | codec.EndPledges()
            | codec.FindTransactions()
        ):
            return await _find_transactions(node, question)


async def _find_transactions(
    node: Uses,
    question: codec.VerifyTransaction
    | codec.JoinTransaction
    | codec.CompleteOffsets
    | codec.EndPledges
    | codec.FindTransactions,
) -> PeerAnswer:
    match question:
        case codec.VerifyTransaction(transactional_id, producer_id, epoch, partitions, groups):
            who = Producer(producer_id, epoch)
            node.transactions.verify_here(transactional_id, who, partitions, groups)
            return PeerAnswer()
        case codec.JoinTransaction(transactional_id, producer_id, epoch, partitions, groups):
            who = Producer(producer_id, epoch)
            await node.transactions.join_here(transactional_id, who, partitions, groups)
            return PeerAnswer()
        case codec.CompleteOffsets(group):
            await replied(partial(_complete_offsets, node, group, _verdict_of(question)))
            return PeerAnswer()
        case codec.EndPledges(partitions, producer_id, epoch, commit):
            who = Producer(producer_id, epoch)
            return await _each(partitions, partial(_end_pledges, node, who, commit))
        case codec.FindTransactions(coordinators, producer_ids, where):
            found = node.transactions.transactions_at(coordinators, producer_ids, where)
            return PeerAnswer(producer_ids=found)


def _verdict_of(question: codec.CompleteOffsets) -> Verdict:
    return Verdict(
        question.producer_id, question.epoch, question.commit, question.coordinator_epoch, question.strict
    )


def _complete_offsets(
    node: Uses, group: str, verdict: Verdict, reply: Callable[[ApiError | None], None]
) -> None:
    def hear(answer: object) -> None:
        reply(answer if isinstance(answer, ApiError) else None)

    node.transactions.complete_offsets(group, verdict, hear)


def _result(error: ApiError | None) -> PartitionResult:
    return PartitionResult() if error is None else PartitionResult(error.code, str(error))


async def _each(
    partitions: Sequence[TopicPartition],
    find: Callable[[TopicPartition], Awaitable[PartitionResult]],
) -> PeerAnswer:
    """One result for each partition; an error of one is not the others'."""
    results: list[PartitionResult] = []
    for where in partitions:
        try:
            results.append(await find(where))
        except ApiError as error:
            results.append(PartitionResult(error.code, str(error)))
    return PeerAnswer(results=results)


async def _ensure(node: Uses, question: codec.EnsureLedgers) -> PeerAnswer:
    await node.topics.reach(question.revision, FOLLOW_S)
    for where in question.partitions:
        node.partitions.lead(*where)  # raises if another node leads it
    keys = [Key(question.group, *where) for where in question.partitions]
    await replied(partial(node.subscriptions.ensure_here, keys, question.from_first))
    for where in question.partitions:
        node.partitions.lead(*where)
        if node.subscriptions.leaders.position(Key(question.group, *where)) is None:
            raise NotLeaderOrFollower("The partition was given up before its ledger was made.")
    return PeerAnswer()


async def _position(node: Uses, group: str, where: TopicPartition) -> PartitionResult:
    found = node.subscriptions.leaders.position(Key(group, *where))
    return PartitionResult(position=None if found is None else codec.PeerPosition(*found))


async def _end_pledges(node: Uses, who: Producer, commit: bool, where: TopicPartition) -> PartitionResult:
    await replied(partial(end_pledges, node, where, who, commit))
    return PartitionResult()


async def _remove(node: Uses, group: str, where: TopicPartition) -> PartitionResult:
    node.partitions.lead(*where)
    await replied(partial(node.subscriptions.remove_here, Key(group, *where)))
    return PartitionResult()
