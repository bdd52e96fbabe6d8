"""SendMessage and SendMessageBatch. An answer is given when the message is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from postroad.client.producer import Delivery, Sent
from postroad.errors import PostroadError, RequestTimedOut
from postroad.gateway.security.rights import WRITE
from postroad.gateway.sqs import answers, batch, queues, uuids
from postroad.gateway.sqs.deduplication import Outcome
from postroad.gateway.sqs.errors import SqsError, from_postroad
from postroad.gateway.sqs.outgoing import Prepared, TooLong, WrongForQueue, prepare, size_of_unsound
from postroad.gateway.sqs.queue import MESSAGE_BYTES_MAX
from postroad.gateway.sqs.requests import SendMessage, SendMessageBatch, SendMessageEntry
from postroad.gateway.sqs.service import Caller, Service

# Sequence numbers have 20 digits and rise with the offset; those of one group are in one partition.
_SEQUENCE_BASE: Final = 10**19
_SEQUENCE_STEP: Final = 10**5  # more than a topic has partitions

Done = Callable[[Callable[[], answers.SqsAnswer]], None]
"""Gets what gives the answer, or raises what went wrong."""


def sequence_number(partition: int, offset: int) -> str:
    return str(_SEQUENCE_BASE + offset * _SEQUENCE_STEP + partition)


def begin_send(service: Service, caller: Caller, asked: SendMessage, done: Done) -> bool:
    """SendMessage without a task, if nothing has to be waited for but that the message is durable."""
    access = caller.access
    if access.is_guarded:
        queues.check_sender(access, asked.queue_url)
    queue = service.known_queue(asked.queue_url)
    if queue is None or queue.fifo:
        return False
    topic = queue.topic
    if access.is_guarded:
        access.check_topic(topic, WRITE)
    prepared = prepare(queue, topic, asked, caller.trace)

    def sent(delivery: Delivery) -> None:
        def answer() -> answers.Sent:
            sent = delivery.result()
            service.gateway.metrics.messages_in.add(1)
            return _sent(_message_id(sent), prepared, None)

        done(answer)

    return service.gateway.publish_now(topic, prepared.message, sent)


async def send_message(service: Service, caller: Caller, asked: SendMessage) -> answers.Sent:
    queue, topic = await queues.to_send(service, caller.access, asked.queue_url)
    prepared = prepare(queue, topic, asked, caller.trace)
    (outcome,) = await _publish(service, topic, [prepared])
    if isinstance(outcome, PostroadError):
        raise from_postroad(outcome)
    number = sequence_number(outcome.partition, outcome.offset) if queue.fifo else None
    return _sent(_message_id(outcome), prepared, number)


def _sent(message_id: str, prepared: Prepared, sequence: str | None) -> answers.Sent:
    return answers.Sent(
        message_id,
        prepared.md5_of_body,
        prepared.md5_of_attributes,
        prepared.md5_of_system_attributes,
        sequence,
    )


async def send_message_batch(service: Service, caller: Caller, asked: SendMessageBatch) -> answers.SentBatch:
    batch.check("SendMessageBatch", asked.entries)
    queue, topic = await queues.to_send(service, caller.access, asked.queue_url)
    answer = answers.SentBatch()
    sound: list[tuple[SendMessageEntry, Prepared]] = []
    size = 0
    for entry in asked.entries:
        try:
            prepared = prepare(queue, topic, entry, caller.trace)
        except SqsError as error:
            if isinstance(error, WrongForQueue):
                raise SqsError("InvalidParameterValueException", error.text) from None
            if isinstance(error, TooLong):
                error = SqsError(error.name, error.text.replace("are invalid", "cannot be validated"))
            answer.failed.append(batch.failed(entry, error))
            size += size_of_unsound(entry)
        else:
            sound.append((entry, prepared))
            size += prepared.size_bytes
    if size > MESSAGE_BYTES_MAX:
        text = f"Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes. You have sent {size} bytes."
        raise SqsError("BatchRequestTooLong", text)
    outcomes = await _publish(service, topic, [prepared for _, prepared in sound])
    for (entry, prepared), outcome in zip(sound, outcomes, strict=True):
        if isinstance(outcome, PostroadError):
            answer.failed.append(batch.failed(entry, from_postroad(outcome)))
            continue
        sent = answers.SentEntry(
            _message_id(outcome),
            prepared.md5_of_body,
            prepared.md5_of_attributes,
            prepared.md5_of_system_attributes,
            sequence_number(outcome.partition, outcome.offset) if queue.fifo else None,
            id=entry.id,
        )
        answer.successful.append(sent)
    return answer


def _message_id(sent: Sent) -> str:
    return uuids.of_message(sent.topic_id, sent.partition, sent.offset)


async def _publish(service: Service, topic: str, prepared: Sequence[Prepared]) -> list[Outcome]:
    if not prepared or prepared[0].duplicate_of is None:
        return await service.gateway.publish(topic, [each.message for each in prepared])
    return await _publish_once(service, topic, prepared)


async def _publish_once(service: Service, topic: str, prepared: Sequence[Prepared]) -> list[Outcome]:
    """FIFO: duplicates, also within the batch, wait for the first one and get its answer."""
    duplicates = service.duplicates
    words = [each.duplicate_of or b"" for each in prepared]
    await _forget_former(service, topic, words)
    claims = [duplicates.claim(word) for word in words]
    ours = [number for number, claim in enumerate(claims) if claim.first]
    outcomes: list[Outcome] = [RequestTimedOut()] * len(ours)  # if we are cancelled nobody knows better
    try:
        outcomes = await service.gateway.publish(topic, [prepared[number].message for number in ours])
    finally:
        for number, outcome in zip(ours, outcomes, strict=True):
            duplicates.settle(words[number], outcome)
    return [await asyncio.shield(claim.outcome) for claim in claims]


async def _forget_former(service: Service, topic: str, words: Sequence[bytes]) -> None:
    """What is in a topic that was deleted since, and made anew by whomever, has no duplicates here. Of what
    the nodes say now, that is: nothing is published for a duplicate that would find out."""
    known = service.duplicates.known(words)
    if not known:
        return
    found = await service.gateway.client.topic_now(topic)
    for word, waiting in known:
        outcome = await asyncio.shield(waiting)
        if isinstance(outcome, Sent) and (found is None or outcome.topic_id != found.id):
            service.duplicates.forget(word, waiting)
