"""DeleteMessage and ChangeMessageVisibility, alone and in batches: what becomes of received messages.

A handle that is none is refused. Deleting with one whose time is over deletes the message, unless somebody
else has received it by now: then it succeeds, as with SQS, and changes nothing. Nor does a visibility timeout
have to be changed before it is over, as long as nobody else has received the message.

A FIFO queue is strict: a handle whose time is over neither deletes nor changes anything, and is refused. But
a node forgets in a restart who held what. A message that it knows of no such delivery of was still held then,
and is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from postroad.client import subscriptions
from postroad.client.browse import DONE
from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType
from postroad.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    InvalidRecordState,
    PostroadError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from postroad.gateway.receipts import Receipt, WrongReceipt
from postroad.gateway.sqs import answers, batch
from postroad.gateway.sqs.errors import SqsError, from_postroad, invalid, missing, wrong_receipt
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.requests import (
    ChangeMessageVisibility,
    ChangeMessageVisibilityBatch,
    ChangeVisibilityEntry,
    DeleteMessage,
    DeleteMessageBatch,
    DeleteMessageEntry,
)
from postroad.gateway.sqs.service import Caller, Service
from postroad.wire.peek import PeekRange
from postroad.wire.share_requests import LATE_ACCEPTS, LATE_CHANGES, NOTHING_LATE

VISIBILITY_S_MAX: Final = 43_200
Entry = TypeVar("Entry", DeleteMessageEntry, ChangeVisibilityEntry)

HELD: Final = "held"
SETTLING: Final = "settling"
GONE: Final = (UnknownTopicId, UnknownTopicOrPartition, GroupIdNotFound)
NOT_HELD: Final = (InvalidRecordState, UnknownTopicId, UnknownTopicOrPartition)
TRY_S: Final = 10.0


async def delete_message(service: Service, _caller: Caller, asked: DeleteMessage) -> answers.Nothing:
    queue = await service.queue(asked.queue_url)
    receipt = _receipt(service, queue, asked.receipt_handle)
    (refused,) = await _delete(service, queue, [receipt])
    if refused is not None and (error := await _not_deleted(service, queue, receipt, refused)):
        raise error
    return answers.Nothing()


async def delete_message_batch(
    service: Service, _caller: Caller, asked: DeleteMessageBatch
) -> answers.DoneBatch:
    batch.check("DeleteMessageBatch", asked.entries)
    queue = await service.queue(asked.queue_url)
    answer = answers.DoneBatch()
    sound = _readable(service, queue, asked.entries, answer)
    refusals = await _delete(service, queue, [receipt for _, receipt in sound])
    for (entry, receipt), refused in zip(sound, refusals, strict=True):
        error = None if refused is None else await _not_deleted(service, queue, receipt, refused)
        if error is None:
            answer.successful.append(answers.DoneEntry(entry.id))
        else:
            answer.failed.append(batch.failed(entry, error))
    return answer


async def change_message_visibility(
    service: Service, _caller: Caller, asked: ChangeMessageVisibility
) -> answers.Nothing:
    queue = await service.queue(asked.queue_url)
    _check_timeout(asked.visibility_timeout)
    receipt = _receipt(service, queue, asked.receipt_handle)
    (refused,) = await _change(service, queue, [receipt], asked.visibility_timeout)
    if refused is not None and (
        error := await _not_changed(service, receipt, refused, asked.visibility_timeout)
    ):
        raise error
    return answers.Nothing()


async def change_message_visibility_batch(
    service: Service, _caller: Caller, asked: ChangeMessageVisibilityBatch
) -> answers.DoneBatch:
    batch.check("ChangeMessageVisibilityBatch", asked.entries)
    queue = await service.queue(asked.queue_url)
    answer = answers.DoneBatch()
    by_timeout: dict[int, list[tuple[ChangeVisibilityEntry, Receipt]]] = {}
    for entry, receipt in _readable(service, queue, asked.entries, answer):
        try:
            by_timeout.setdefault(_check_timeout(entry.visibility_timeout), []).append((entry, receipt))
        except SqsError as wrong:
            answer.failed.append(batch.failed(entry, wrong))
    for timeout_s, sound in by_timeout.items():
        refusals = await _change(service, queue, [receipt for _, receipt in sound], timeout_s)
        for (entry, receipt), refused in zip(sound, refusals, strict=True):
            error = None if refused is None else await _not_changed(service, receipt, refused, timeout_s)
            if error is None:
                answer.successful.append(answers.DoneEntry(entry.id))
            else:
                answer.failed.append(batch.failed(entry, error))
    return answer


async def _delete(service: Service, queue: Queue, receipts: Sequence[Receipt]) -> list[PostroadError | None]:
    late = NOTHING_LATE if queue.fifo else LATE_ACCEPTS
    return await service.gateway.settle(receipts, AckType.ACCEPT, late=late)


async def _change(
    service: Service, queue: Queue, receipts: Sequence[Receipt], timeout_s: int
) -> list[PostroadError | None]:
    late = NOTHING_LATE if queue.fifo else LATE_CHANGES
    if timeout_s == 0:
        return await service.gateway.settle(receipts, AckType.RELEASE, delay_ms=0, late=late)
    return await service.gateway.settle(receipts, AckType.RENEW, lock_ms=timeout_s * 1000, late=late)


async def _not_deleted(
    service: Service, queue: Queue, receipt: Receipt, refused: PostroadError
) -> SqsError | None:
    """Why a message could not be deleted; None: that is answered like success, as Amazon does."""
    if not isinstance(refused, NOT_HELD):
        return from_postroad(refused)
    if not queue.fifo:
        return None
    try:
        found = await _found(service, receipt)
    except PostroadError as error:
        return from_postroad(error)
    if found.state == DONE:
        return None
    if found.state != HELD and found.deliveries < receipt.deliveries:  # it was held when its node restarted
        (refused_again,) = await service.gateway.settle([receipt], AckType.ACCEPT, late=LATE_ACCEPTS)
        if refused_again is None:
            return None
    handle = service.gateway.receipts.write(receipt)
    return invalid("ReceiptHandle", handle, "The receipt handle has expired.")


async def _not_changed(
    service: Service, receipt: Receipt, refused: PostroadError, timeout_s: int
) -> SqsError | None:
    """Why a visibility timeout could not be changed; None: the message is visible, as was asked for."""
    if not isinstance(refused, NOT_HELD):
        return from_postroad(refused)
    try:
        state = (await _found(service, receipt)).state
    except PostroadError as error:
        return from_postroad(error)
    if state == DONE:
        handle = service.gateway.receipts.write(receipt)
        reason = "Message does not exist or is not available for visibility timeout change."
        return invalid("ReceiptHandle", handle, reason)
    if state != HELD and timeout_s == 0:
        return None
    return SqsError("MessageNotInflight", "The specified message is not in flight.")


async def _found(service: Service, receipt: Receipt) -> PeekRange:
    """What has become of a message that its receiver no longer holds, in the words of a peek, when all that
    is being decided about it is decided."""
    client = service.gateway.client

    async def attempt() -> PeekRange:
        found = await subscriptions.peek(client, receipt.subscription, topic_partition, receipt.offset, 1)
        for each in found.ranges:
            if each.first <= receipt.offset <= each.last:
                if each.state == SETTLING:
                    raise CoordinatorNotAvailable("Something is being decided about this message.")
                return each
        return PeekRange(state=DONE)

    try:
        topic = await service.gateway.topic_ids.topic(receipt.topic_id)
        topic_partition = TopicPartition(topic.name, receipt.partition)
        return await client.retry(attempt, timeout_s=TRY_S)
    except GONE:
        return PeekRange(state=DONE)


def _check_timeout(timeout_s: int | None) -> int:
    if timeout_s is None:
        raise missing("VisibilityTimeout")
    if not 0 <= timeout_s <= VISIBILITY_S_MAX:
        reason = f"VisibilityTimeout must be an integer between 0 and {VISIBILITY_S_MAX}."
        raise invalid("VisibilityTimeout", timeout_s, reason)
    return timeout_s


def _receipt(service: Service, queue: Queue, handle: str) -> Receipt:
    """Raises SqsError if it is none, or one of another queue."""
    try:
        receipt = service.gateway.receipts.read(handle)
    except WrongReceipt:
        raise wrong_receipt(handle) from None
    if receipt.subscription != queue.name:
        raise wrong_receipt(handle)
    return receipt


def _readable(
    service: Service, queue: Queue, entries: Sequence[Entry], answer: answers.DoneBatch
) -> list[tuple[Entry, Receipt]]:
    sound: list[tuple[Entry, Receipt]] = []
    for entry in entries:
        try:
            sound.append((entry, _receipt(service, queue, entry.receipt_handle)))
        except SqsError as error:
            answer.failed.append(batch.failed(entry, error))
    return sound
