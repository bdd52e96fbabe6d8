"""ReceiveMessage: waits for messages, and shows them as SQS does.

A Kafka client may have published anything. A body that is no text that SQS takes comes in base64, and the
message attribute `postroad-body-encoding` says so, asked for or not.
"""

from __future__ import annotations

import base64
from typing import Final

from postroad.client.share_message import ShareMessage
from postroad.errors import PostroadError
from postroad.gateway.receiver import Received
from postroad.gateway.security.rights import DESCRIBE
from postroad.gateway.sqs import answers, attributes, md5, message_attributes, names, text, uuids
from postroad.gateway.sqs.errors import invalid
from postroad.gateway.sqs.message_attributes import BASE64, BODY_ENCODING, Wanted
from postroad.gateway.sqs.outgoing import TRACE, TRACE_ATTRIBUTE, deduplication_id
from postroad.gateway.sqs.queue import MESSAGE_BYTES_MAX
from postroad.gateway.sqs.requests import ReceiveMessage
from postroad.gateway.sqs.sending import sequence_number
from postroad.gateway.sqs.service import Caller, Service
from postroad.wire.header_names import (
    DEAD_DELIVERIES,
    DEAD_FIRST_DELIVERY,
    DEAD_OFFSET,
    DEAD_PARTITION,
    DEAD_SUBSCRIPTION,
    DEAD_TIMESTAMP,
    DEAD_TOPIC,
)

MESSAGES_MAX: Final = 10
BYTES_MAX: Final = MESSAGE_BYTES_MAX + MESSAGES_MAX * 1024  # what one batch can send, and what nodes add
WAIT_S_MAX: Final = 20
VISIBILITY_S_MAX: Final = 43_200

SENDER: Final = "AIDAPOSTROADANONYMOUS"  # in the form of a user's id: nobody keeps who sent a message

ALL: Final = frozenset({"All", "ALL"})
SYSTEM_NAMES: Final = frozenset(
    {
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "SequenceNumber",
        "MessageDeduplicationId",
        "MessageGroupId",
        TRACE_ATTRIBUTE,
        "DeadLetterQueueSourceArn",
    }
)


async def receive_message(service: Service, caller: Caller, asked: ReceiveMessage) -> answers.Messages:
    queue = await service.queue(asked.queue_url)
    count = _bounded("MaxNumberOfMessages", asked.max_number_of_messages, 1, MESSAGES_MAX)
    wait_s = asked.wait_time_seconds
    if wait_s is not None and not 0 <= wait_s <= WAIT_S_MAX:
        raise invalid("WaitTimeSeconds", wait_s, f"Must be >= 0 and <= {WAIT_S_MAX}, if provided.")
    lock_s = _bounded("VisibilityTimeout", asked.visibility_timeout, 0, VISIBILITY_S_MAX)
    view = _View(service, caller, asked, queue.fifo)
    count = 1 if count is None else count
    service.gateway.consumers.note(queue.name, caller.consumer)
    received = await service.gateway.receive(
        queue.name,
        count,
        queue.wait_ms if wait_s is None else wait_s * 1000,
        None if lock_s is None else lock_s * 1000,
        lambda: caller.is_gone,
        run_max=count if queue.fifo else 1,
        max_bytes=BYTES_MAX,
        access=caller.access,
    )
    return answers.Messages([await view.of(each) for each in received] or None)


def _number(header: bytes | None) -> int:
    """What a dead letter brings along; anybody may write headers."""
    return int(header) if header is not None and header.isdigit() and len(header) < 19 else 0


def _bounded(parameter: str, value: int | None, low: int, high: int) -> int | None:
    if value is not None and not low <= value <= high:
        raise invalid(parameter, value, f"Must be between {low} and {high}, if provided.")
    return value


class _View:
    """Shows messages as one caller asked for them. Raises SqsError if it asks for an unknown attribute."""

    def __init__(self, service: Service, caller: Caller, asked: ReceiveMessage, fifo: bool) -> None:
        self._service = service
        self._caller = caller
        self._fifo = fifo
        system = {*(asked.attribute_names or ()), *(asked.message_system_attribute_names or ())}
        for name in system - SYSTEM_NAMES - ALL:
            if name not in attributes.NAMES:  # those of queues are accepted, and mean nothing here
                raise attributes.unknown(name)
        self._system = SYSTEM_NAMES if system & ALL else SYSTEM_NAMES & system
        self._wanted = Wanted(asked.message_attribute_names or ())

    async def of(self, received: Received) -> answers.Message:
        message = received.message
        message_id = await self._message_id(received)
        value = message.value or b""
        body = text.decode(value)
        shown = self._wanted.of(message_attributes.read(message.headers)) if self._wanted else {}
        if body is None:
            value = base64.b64encode(value)
            body = value.decode()
            shown[BODY_ENCODING] = BASE64
        return answers.Message(
            message_id,
            self._service.gateway.receipts.write(received.receipt),
            md5.of_body(value),
            body,
            (self._attributes(message, message_id) or None) if self._system else None,
            md5.of_attributes(shown),
            shown or None,
        )

    async def _message_id(self, received: Received) -> str:
        """A dead letter keeps the id of the message that it was."""
        message, receipt = received
        headers = dict(message.headers)
        if DEAD_TOPIC in headers:
            try:
                name = (headers[DEAD_TOPIC] or b"").decode()
                self._caller.access.check_topic(name, DESCRIBE)  # anybody may write headers
                topic = await self._service.gateway.client.topic(name)
                partition, offset = int(headers[DEAD_PARTITION] or b""), int(headers[DEAD_OFFSET] or b"")
                return uuids.of_message(topic.id, partition & 0x7FFFFFFF, offset & 0x7FFFFFFFFFFFFFFF)
            except (PostroadError, ValueError, KeyError):
                pass  # its topic is gone, or somebody else wrote these headers
        return uuids.of_message(receipt.topic_id, message.partition, message.offset)

    def _attributes(self, message: ShareMessage, message_id: str) -> dict[str, str]:
        headers = dict(message.headers)
        now_ms = self._service.gateway.now_ms()
        group = None if message.key is None else text.decode(message.key)
        source = text.decode(headers.get(DEAD_SUBSCRIPTION) or b"")
        trace = text.decode(headers.get(TRACE) or b"")
        first_ms = 0
        if "ApproximateFirstReceiveTimestamp" in self._system:
            first_ms = _number(headers.get(DEAD_FIRST_DELIVERY)) or self._service.first_receives.time_ms(
                message_id, message.delivery_count, now_ms
            )
        known = {
            "SenderId": SENDER,
            "SentTimestamp": text.decode(headers.get(DEAD_TIMESTAMP) or b"") or str(message.timestamp),
            "ApproximateReceiveCount": str(message.delivery_count + _number(headers.get(DEAD_DELIVERIES))),
            "ApproximateFirstReceiveTimestamp": str(first_ms),
            "SequenceNumber": sequence_number(message.partition, message.offset) if self._fifo else None,
            "MessageDeduplicationId": deduplication_id(message.headers),
            "MessageGroupId": group,
            TRACE_ATTRIBUTE: trace,
            "DeadLetterQueueSourceArn": names.arn_of(self._caller.region, source) if source else None,
        }
        return {name: value for name, value in known.items() if value and name in self._system}
