"""DeleteMessage and ChangeMessageVisibility, alone and in batches: what becomes of received messages.

A handle that is none is refused. Deleting with one whose time is over deletes the message, unless somebody
else has received it by now: then it succeeds, as with SQS, and changes nothing; a FIFO queue says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from postroad.client import subscriptions
from postroad.client.browse import DONE
from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType
from postroad.errors import InvalidRecordState, PostroadError, UnknownTopicId, UnknownTopicOrPartition
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

VISIBILITY_S_MAX: Final = 43_200
Entry = TypeVar("Entry", DeleteMessageEntry, ChangeVisibilityEntry)

HELD: Final = "held"
NOT_HELD: Final = (InvalidRecordState, UnknownTopicId, UnknownTopicOrPartition)


async def delete_message(service: Service, _caller: Caller, asked: DeleteMessage) -> answers.Nothing:
    queue = await service.queue(asked.queue_url)
    receipt = _receipt(service, queue, asked.receipt_handle)
    (refused,) = await service.gateway.settle([receipt], AckType.ACCEPT)
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
    refusals = await service.gateway.settle([receipt for _, receipt in sound], AckType.ACCEPT)
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
    (refused,) = await _change(service, [receipt], asked.visibility_timeout)
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
        refusals = await _change(service, [receipt for _, receipt in sound], timeout_s)
        for (entry, receipt), refused in zip(sound, refusals, strict=True):
            error = None if refused is None else await _not_changed(service, receipt, refused, timeout_s)
            if error is None:
                answer.successful.append(answers.DoneEntry(entry.id))
            else:
                answer.failed.append(batch.failed(entry, error))
    return answer


async def _change(
    service: Service, receipts: Sequence[Receipt], timeout_s: int
) -> list[PostroadError | None]:
    if timeout_s == 0:
        return await service.gateway.settle(receipts, AckType.RELEASE, delay_ms=0)
    return await service.gateway.settle(receipts, AckType.RENEW, lock_ms=timeout_s * 1000)


async def _not_deleted(
    service: Service, queue: Queue, receipt: Receipt, refused: PostroadError
) -> SqsError | None:
    """Why a message could not be deleted; None: that is answered like success, as Amazon does."""
    if not isinstance(refused, NOT_HELD):
        return from_postroad(refused)
    if queue.fifo and await _state(service, receipt) != DONE:
        handle = service.gateway.receipts.write(receipt)
        return invalid("ReceiptHandle", handle, "The receipt handle has expired.")
    return None


async def _not_changed(
    service: Service, receipt: Receipt, refused: PostroadError, timeout_s: int
) -> SqsError | None:
    """Why a visibility timeout could not be changed; None: the message is visible, as was asked for."""
    if not isinstance(refused, NOT_HELD):
        return from_postroad(refused)
    state = await _state(service, receipt)
    if state == DONE:
        handle = service.gateway.receipts.write(receipt)
        reason = "Message does not exist or is not available for visibility timeout change."
        return invalid("ReceiptHandle", handle, reason)
    if state != HELD and timeout_s == 0:
        return None
    return SqsError("MessageNotInflight", "The specified message is not in flight.")


async def _state(service: Service, receipt: Receipt) -> str:
    """What has become of a message that its receiver no longer holds, in the words of a peek."""
    client = service.gateway.client
    try:
        topic = await service.gateway.topic_ids.topic(receipt.topic_id)
        topic_partition = TopicPartition(topic.name, receipt.partition)
        found = await subscriptions.peek(client, receipt.subscription, topic_partition, receipt.offset, 1)
    except PostroadError:
        return DONE
    states = [each.state for each in found.ranges if each.first <= receipt.offset <= each.last]
    return states[0] if states else DONE


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
