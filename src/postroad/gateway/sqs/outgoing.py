"""A message on its way in: from what SQS was asked for to the record that is published.

    MessageBody → value    MessageGroupId → key    MessageAttributes → headers (`message_attributes.py`)
    DelaySeconds → postroad-delay-ms    MessageDeduplicationId → postroad-dedup-id

Where a queue deduplicates by message group, the id in the header is `<group> NUL <id>`: the node compares
within a partition, and a partition has many groups. Once the queue was purged it begins with `<when> NUL`:
a purge forgets the ids that were used before.
"""

from __future__ import annotations

from hashlib import sha256
from string import ascii_letters, digits, punctuation
from typing import Final, NamedTuple

from postroad.gateway.gateway import Message
from postroad.gateway.sqs import md5, message_attributes, text
from postroad.gateway.sqs.errors import SqsError, invalid, missing
from postroad.gateway.sqs.message_attributes import Headers
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.requests import MessageAttributes, Outgoing
from postroad.wire.header_names import DEDUP_ID, DELAY_MS, SET_ASIDE

DELAY_S_MAX: Final = 900
ID_CHARACTERS_MAX: Final = 128  # of groups and deduplication ids
TRACE: Final = "postroad-aws-trace"
TRACE_ATTRIBUTE: Final = "AWSTraceHeader"
TENANT: Final = "postroad-sqs-group"  # what standard queues are fair by
DEAD_DEDUP_ID: Final = SET_ASIDE[DEDUP_ID]  # a dead letter's, which holds for nobody
SCOPE_MARK: Final = b"\0"

_ID_CHARACTERS: Final = frozenset(ascii_letters + digits + punctuation)


class Prepared(NamedTuple):
    message: Message
    size_bytes: int
    md5_of_body: str
    md5_of_attributes: str | None
    md5_of_system_attributes: str | None
    duplicate_of: bytes | None  # the word by which FIFO duplicates are known


class WrongForQueue(SqsError):
    """What a FIFO queue needs is missing, so that the whole batch is refused, as with Amazon."""


class TooLong(SqsError):
    """More bytes than the queue takes. Amazon has other words for it in a batch."""


def prepare(queue: Queue, topic: str, asked: Outgoing, trace: str = "") -> Prepared:
    """Raises SqsError if it is not a message that this queue takes. `trace` is the request's own, which a
    message has that names none."""
    body = text.encode(asked.message_body)
    if body is None:
        raise SqsError("InvalidMessageContents", "The message contains characters outside the allowed set.")
    if not body:
        raise missing("MessageBody")
    headers, size = message_attributes.write(asked.message_attributes)
    size += len(body)
    if size > queue.message_bytes_max:
        reason = f"Message must be shorter than {queue.message_bytes_max} bytes."
        what = f"One or more parameters are invalid. Reason: {reason}"
        raise TooLong("InvalidParameterValueException", what)
    headers = [*headers, *_own_headers(queue, asked, trace)]
    key = None if asked.message_group_id is None else asked.message_group_id.encode()
    duplicate_of = None
    if queue.fifo:
        word = _deduplication_word(queue, asked, body)
        headers.append((DEDUP_ID, word))
        duplicate_of = topic.encode() + SCOPE_MARK + word
    return Prepared(
        Message(body, key, headers),
        size,
        md5.of_body(body),
        md5.of_attributes(asked.message_attributes),
        md5.of_attributes(asked.message_system_attributes),
        duplicate_of,
    )


def size_of_unsound(asked: Outgoing) -> int:
    """How many bytes it has, though `prepare` did not take it."""
    texts = [asked.message_body]
    size = 0
    for name, attribute in (asked.message_attributes or {}).items():
        texts += name, attribute.data_type, attribute.string_value or ""
        size += len(attribute.binary_value or b"")
    return size + sum(len(each.encode(errors="surrogatepass")) for each in texts)


def deduplication_id(headers: Headers) -> str | None:
    """The one that the sender gave."""
    for name, value in headers:
        if name in (DEDUP_ID, DEAD_DEDUP_ID) and value is not None:
            return text.decode(value.rpartition(SCOPE_MARK)[2])
    return None


def _own_headers(queue: Queue, asked: Outgoing, trace: str) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = []
    delay_ms = _delay_ms(queue, asked.delay_seconds)
    if delay_ms:
        headers.append((DELAY_MS, b"%d" % delay_ms))
    if asked.message_group_id is not None:
        _check_id("MessageGroupId", asked.message_group_id)
        if not queue.fifo:
            headers.append((TENANT, asked.message_group_id.encode()))
    elif queue.fifo:
        wrong = missing("MessageGroupId")
        raise WrongForQueue(wrong.name, wrong.text)
    if asked.message_deduplication_id is not None and not queue.fifo:
        raise invalid("MessageDeduplicationId", asked.message_deduplication_id[:200], _WRONG_TYPE)
    if asked.message_system_attributes:
        headers.append((TRACE, _trace(asked.message_system_attributes)))
    elif trace and (value := text.encode(trace)) is not None:
        headers.append((TRACE, value))
    return headers


_WRONG_TYPE: Final = "The request include parameter that is not valid for this queue type."  # Amazon's words


def _delay_ms(queue: Queue, asked_s: int | None) -> int:
    if asked_s is None:
        return queue.delay_ms
    if not 0 <= asked_s <= DELAY_S_MAX:
        raise invalid("DelaySeconds", asked_s, f"DelaySeconds must be >= 0 and <= {DELAY_S_MAX}.")
    if queue.fifo and asked_s:
        raise invalid("DelaySeconds", asked_s, _WRONG_TYPE)
    return queue.delay_ms if queue.fifo else asked_s * 1000


def _deduplication_word(queue: Queue, asked: Outgoing, body: bytes) -> bytes:
    if asked.message_deduplication_id is not None:
        _check_id("MessageDeduplicationId", asked.message_deduplication_id)
        word = asked.message_deduplication_id.encode()
    elif queue.deduplicates_by_content:
        word = sha256(body).hexdigest().encode()
    else:
        raise WrongForQueue(
            "InvalidParameterValueException",
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId "
            "provided explicitly",
        )
    if queue.deduplicates_by_group:
        word = (asked.message_group_id or "").encode() + SCOPE_MARK + word
    if queue.remembered.purged_ms:  # what was sent before the purge is no first message
        word = b"%d" % queue.remembered.purged_ms + SCOPE_MARK + word
    return word


def _check_id(parameter: str, value: str) -> None:
    if not 0 < len(value) <= ID_CHARACTERS_MAX or not _ID_CHARACTERS.issuperset(value):
        reason = (
            f"{parameter} can only include alphanumeric and punctuation characters. "
            f"1 to {ID_CHARACTERS_MAX} in length."
        )
        raise invalid(parameter, value[:200], reason)


def _trace(attributes: MessageAttributes) -> bytes:
    trace = attributes.get(TRACE_ATTRIBUTE)
    value = None if trace is None else text.encode(trace.string_value or "")
    if trace is None or len(attributes) > 1 or trace.data_type != "String" or not value:
        raise invalid(
            "MessageSystemAttributes", ", ".join(attributes)[:200], "Only AWSTraceHeader, a String."
        )
    return value
