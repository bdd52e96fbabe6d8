"""TxnOffsetCommit (28), versions 0–5: offsets that count if the transaction commits.

The group's coordinator keeps them beside the committed ones until the transaction has ended. From version 5
on they make the group part of the transaction (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import enter
from postroad.broker.parts import HasGroups, HasImage, HasSubscriptions, HasTransactions
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    GroupIdNotFound,
    InvalidTransactionState,
    OffsetMetadataTooLarge,
    TransactionAbortable,
    UnknownTopicOrPartition,
)
from postroad.groups.answers import Answer, Outcome
from postroad.groups.coordinator import Groups
from postroad.groups.requests import CommitRequest, OffsetToCommit
from postroad.now import Now
from postroad.security.resources import Operation
from postroad.transactions.transaction import Producer
from postroad.wire.messages import txn_offset_commit as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.READ, transactional_id=Operation.WRITE)

METADATA_BYTES_MAX: Final = 4096
ABORTABLE_FROM: Final = 4  # clients know TRANSACTION_ABORTABLE
JOINS_FROM: Final = 5


class Uses(HasGroups, HasImage, HasSubscriptions, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    codes = {
        (topic.name, p.partition_index): _wrong(node, call.access, topic.name, p)
        for topic in request.topics
        for p in topic.partitions
    }
    offsets = tuple(
        OffsetToCommit(
            topic.name,
            p.partition_index,
            p.committed_offset,
            p.committed_leader_epoch,
            p.committed_metadata or "",
        )
        for topic in request.topics
        for p in topic.partitions
        if not codes[topic.name, p.partition_index]
    )
    who = Producer(request.producer_id, request.producer_epoch)
    wanted = CommitRequest(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id, offsets
    )

    def respond(answer: Answer) -> bytes:
        code = _code(answer, version) if isinstance(answer, ApiError) else 0
        return _respond(request, {where: code or own for where, own in codes.items()}, version)

    try:
        call.access.check_transactional_id(request.transactional_id)
        call.access.check_group(request.group_id)
        node.transactions.check(request.transactional_id)
        if version < JOINS_FROM:
            node.transactions.check_offsets(request.transactional_id, call.connection.serial)
        if node.subscriptions.exists(request.group_id):
            raise GroupIdNotFound(f"{request.group_id!r} is a subscription: use another group id.")
    except ApiError as error:
        return respond(error)
    serial = call.connection.serial if version < JOINS_FROM else None
    return _commit(node, request.transactional_id, serial, who, wanted, respond)


async def _commit(
    node: Uses,
    transactional_id: str,
    serial: int | None,
    who: Producer,
    wanted: CommitRequest,
    respond: Callable[[Answer], bytes],
) -> bytes:
    """The offsets come in if the coordinator of the transaction knows of the group.

    `serial` is None where the group joins the transaction by itself: then the epoch says what is late."""
    try:
        if serial is None:
            await node.transactions.join(transactional_id, who, (), (wanted.group_id,))
        else:
            await node.transactions.verify(transactional_id, who, (), (wanted.group_id,))
            node.transactions.admit_offsets(transactional_id, serial)  # it may have gone on meanwhile
    except ApiError as error:
        return respond(error)
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def reply(result: Answer) -> None:
        if not answer.done():
            answer.set_result(result)

    def decide(groups: Groups, token: object, now: Now) -> Outcome:
        node.transactions.admit_epoch(who)
        return groups.commit_in_transaction(wanted, *who, token, now)

    enter(
        node,
        wanted.group_id,
        decide,
        reply,
        shared=True,
    )
    return respond(await answer)


def _code(error: ApiError, version: int) -> int:
    if isinstance(error, InvalidTransactionState) and version >= ABORTABLE_FROM:
        return TransactionAbortable.code
    if isinstance(error, ConcurrentTransactions):  # no client expects it here, and all ask again after this
        return CoordinatorLoadInProgress.code
    return error.code


def _wrong(node: Uses, access: Access, topic: str, p: codec.TxnOffsetCommitRequestPartition) -> int:
    refusal = access.topic_refusal(topic)
    if refusal is not None:
        return refusal.code
    if not node.image.has_partition(topic, p.partition_index):
        return UnknownTopicOrPartition.code
    if len((p.committed_metadata or "").encode()) > METADATA_BYTES_MAX:
        return OffsetMetadataTooLarge.code
    return 0


def _respond(request: codec.TxnOffsetCommitRequest, codes: dict[tuple[str, int], int], version: int) -> bytes:
    topics = [
        codec.TxnOffsetCommitResponseTopic(
            topic.name,
            [
                codec.TxnOffsetCommitResponsePartition(
                    p.partition_index, codes[topic.name, p.partition_index]
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return codec.encode_response(codec.TxnOffsetCommitResponse(topics=topics), version)
