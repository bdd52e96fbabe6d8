"""Publishing over REST: one message or many as JSON, or one as bytes.

Under an Idempotency-Key a request that is repeated within ten minutes, at any gateway, is stored once and
answered alike (`client.publish_once`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from aiohttp import hdrs, web
from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from postroad.client import publish_once
from postroad.client.metadata import Topic
from postroad.client.producer import Sent
from postroad.errors import PostroadError
from postroad.gateway import bodies, message_ids
from postroad.gateway.gateway import Message
from postroad.gateway.rest import problems
from postroad.gateway.rest.content import Bytes, HeaderPairs, NewValue, read_bytes, read_headers, read_value
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import DelayMs, PartitionNumber, TimeMs
from postroad.gateway.rest.problems import KEY_REUSED, MEDIA, NOT_FOUND, REFUSED, TOO_LARGE, Problem, Refused
from postroad.gateway.security.rights import WRITE, Rights
from postroad.wire.asked_times import unreadable_time
from postroad.wire.header_names import DELAY_MS, DELIVER_AT, EXPIRES_AT

MESSAGES_MAX: Final = 1000
OCTETS: Final = "application/octet-stream"
CONTENT_TYPE: Final = "content-type"


class NewMessage(Struct, forbid_unknown_fields=True):
    value: NewValue
    key: Bytes = None
    headers: Annotated[
        dict[str, Bytes] | HeaderPairs,
        Meta(description="An object, or pairs if a name occurs twice."),
    ] = {}
    delay_ms: Annotated[DelayMs | None, Meta(description="Subscriptions deliver it after this.")] = None
    deliver_at_ms: Annotated[TimeMs | None, Meta(description="Subscriptions deliver it at this time.")] = None
    expires_at_ms: Annotated[
        TimeMs | None,
        Meta(description="It becomes a dead letter at this time."),
    ] = None
    partition: Annotated[PartitionNumber | None, Meta(description="Default: chosen by the key.")] = None
    timestamp_ms: Annotated[TimeMs | None, Meta(description="Without: now.")] = None


NewMessages = NewMessage | Annotated[list[NewMessage], Meta(min_length=1, max_length=MESSAGES_MAX)]

IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=255, pattern="^[!-~]{1,255}$")]


class PublishHeaders(Struct, rename=lambda name: "-".join(map(str.capitalize, name.split("_")))):
    """All but the first are for bodies that are no JSON."""

    idempotency_key: Annotated[
        IdempotencyKey | None,
        Meta(description="A request repeated with the same key is answered like the first, and stored once."),
    ] = None
    postroad_key: Annotated[str | None, Meta(description="The message's key.")] = None
    postroad_header: Annotated[
        str | None,
        Meta(description="`name=value`, or `name` alone for null; may be given several times."),
    ] = None
    postroad_delay_ms: DelayMs | None = None
    postroad_deliver_at_ms: TimeMs | None = None
    postroad_expires_at_ms: TimeMs | None = None
    postroad_partition: PartitionNumber | None = None


_HEADER_NAMES: Final = [known.encode_name for known in fields(PublishHeaders)]


class Published(Struct):
    """Where a message is now, durably; or `problem`: why it is nowhere. A repetition of something so long
    past that its offset is forgotten has no id and no offset."""

    id: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    problem: Problem | None = None


class PublishAnswer(Struct):
    """In the order of the request."""

    messages: list[Published]


@endpoint(
    "POST", "/v1/topics/{topic}/messages", "Publish one message or many.", Rights(topic=WRITE),
    status=201, answers={207: "Some messages could not be stored; each result says why."},
    raw_body=True, headers=PublishHeaders,
    problems=(NOT_FOUND, TOO_LARGE, MEDIA, REFUSED, KEY_REUSED),
)  # fmt: skip
async def publish(call: Call[NewMessages, Nothing]) -> PublishAnswer | EndpointAnswer:
    """What is answered is durable. A JSON body is one message, or an array of them. A body of any other type
    is the value of one message, as it is; key, headers and times are then request headers.

    If none of the messages can be stored the answer is the problem of the first.
    """
    headers = _headers(call.request)
    if call.body is None:
        messages = [await _raw(call.request, headers)]
    else:
        several = call.body if isinstance(call.body, list) else [call.body]
        messages = [message_of(new) for new in several]
    topic = await call.gateway.topic_to_write(call.access, call.path["topic"])
    if headers.idempotency_key is None:
        outcomes = await call.gateway.publish(topic.name, messages)
    else:
        outcomes = await _publish_once(call, topic, messages, headers.idempotency_key)
    return _answer(outcomes)


async def _publish_once(
    call: Call[NewMessages, Nothing], topic: Topic, messages: Sequence[Message], key: str
) -> list[Sent | PostroadError]:
    content = hashlib.sha256(await bodies.read(call.request))
    for name, value in sorted(call.request.headers.items()):
        if name.lower().startswith("postroad-"):
            content.update(f"{name.lower()}={value}\n".encode("utf-8", "surrogateescape"))
    once = publish_once.Once(f"{topic.name}\n{key}".encode(), content.digest())
    return await publish_once.publish(call.gateway.client, topic, messages, once)


def message_of(new: NewMessage) -> Message:
    headers = read_headers(new.headers)
    given = {DELAY_MS: new.delay_ms, DELIVER_AT: new.deliver_at_ms, EXPIRES_AT: new.expires_at_ms}
    return Message(
        read_value(new.value),
        read_bytes(new.key),
        _with_times(headers, given),
        new.timestamp_ms,
        new.partition,
    )


async def _raw(request: web.Request, headers: PublishHeaders) -> Message:
    pairs: list[tuple[str, bytes | None]] = []
    for text in request.headers.getall("Postroad-Header", []):
        name, equals, value = text.partition("=")
        if not name:
            raise Refused(problems.REFUSED, "Postroad-Header must be name=value.")
        pairs.append((name, value.encode("utf-8", "surrogateescape") if equals else None))
    if request.content_type != OCTETS:
        pairs.append((CONTENT_TYPE, request.headers[hdrs.CONTENT_TYPE].encode("utf-8", "surrogateescape")))
    given = {
        DELAY_MS: headers.postroad_delay_ms,
        DELIVER_AT: headers.postroad_deliver_at_ms,
        EXPIRES_AT: headers.postroad_expires_at_ms,
    }
    key = headers.postroad_key
    return Message(
        await bodies.read(request),
        None if key is None else key.encode("utf-8", "surrogateescape"),
        _with_times(pairs, given),
        None,
        headers.postroad_partition,
    )


def _headers(request: web.Request) -> PublishHeaders:
    given = {name: request.headers[name] for name in _HEADER_NAMES if name in request.headers}
    try:
        return convert(given, PublishHeaders, strict=False)
    except (ValidationError, UnicodeError) as error:
        raise Refused(problems.MALFORMED, f"headers: {error}") from None


def _with_times(
    headers: list[tuple[str, bytes | None]], given: Mapping[str, int | None]
) -> list[tuple[str, bytes | None]]:
    """Times are headers of the message; given twice, it would be unclear which holds."""
    times = {name: str(time).encode() for name, time in given.items() if time is not None}
    if any(name in times for name, _ in headers):
        raise Refused(problems.REFUSED, "A time is given both as a field and as a header of the message.")
    if (wrong := unreadable_time(headers)) is not None:
        raise Refused(problems.REFUSED, f"The header {wrong}.")
    return [*headers, *times.items()]


def _answer(outcomes: Sequence[Sent | PostroadError]) -> EndpointAnswer:
    refused = [outcome for outcome in outcomes if isinstance(outcome, PostroadError)]
    if len(refused) == len(outcomes):
        raise refused[0]
    published = [published_of(outcome) for outcome in outcomes]
    return EndpointAnswer(PublishAnswer(published), status=207 if refused else None)


def published_of(outcome: Sent | PostroadError) -> Published:
    if isinstance(outcome, PostroadError):
        return Published(problem=problems.of(outcome))
    if outcome.offset < 0:
        return Published(topic=outcome.topic, partition=outcome.partition)
    message_id = message_ids.write(outcome.topic_id, outcome.partition, outcome.offset)
    return Published(message_id, outcome.topic, outcome.partition, outcome.offset)
