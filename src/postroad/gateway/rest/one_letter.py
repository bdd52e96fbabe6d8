"""One dead letter over REST: edited and sent back, or discarded."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from postroad.client import browse, offsets, one_letter
from postroad.client.metadata import TopicPartition
from postroad.client.one_letter import Replacement
from postroad.client.redrive import revived
from postroad.gateway import message_ids
from postroad.gateway.directory import SubscriptionInfo
from postroad.gateway.message_ids import WrongMessageId
from postroad.gateway.rest import letters, problems
from postroad.gateway.rest.content import Bytes, HeaderPairs, NewValue, read_bytes, read_headers, read_value
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import TopicName
from postroad.gateway.rest.problems import LOCK_LOST, NOT_FOUND, REFUSED, Refused
from postroad.gateway.security.rights import READ, WRITE, Rights
from postroad.wire.header_names import DEAD_SUBSCRIPTION, DEAD_TOPIC, FOR
from postroad.wire.records import Record

LETTER = "/v1/subscriptions/{subscription}/dead-letters/{message}"


class LetterToSend(Struct, forbid_unknown_fields=True):
    """What is not given is as in the letter. `headers` are all that the message has: without any those of the
    letter go along, but for the marks of death, delay and expiry."""

    to: Annotated[TopicName | None, Meta(description="Default: the topic that it came from.")] = None
    to_all: Annotated[
        bool,
        Meta(description="For all subscriptions of the topic, not only for the one in which it died."),
    ] = False
    key: Bytes | UnsetType = UNSET
    value: NewValue | UnsetType = UNSET
    headers: dict[str, Bytes] | HeaderPairs | UnsetType = UNSET


class LetterSent(Struct):
    """Where the message is now. `id` finds it with `GET /v1/messages/{id}`."""

    id: str
    topic: str
    partition: int
    offset: int


class _Letter(NamedTuple):
    info: SubscriptionInfo
    topic_partition: TopicPartition
    record: Record


@endpoint(
    "POST", LETTER + "/redrive", "Send one dead letter back, as it is or edited.",
    Rights(group=READ, topics=READ, by_handler="Read on the dead letters, Write where it goes"),
    problems=(NOT_FOUND, REFUSED, LOCK_LOST),
)  # fmt: skip
async def redrive_one(call: Call[LetterToSend, Nothing]) -> LetterSent:
    """At its own topic it is for the subscription in which it died: others pass it over, unless `to_all` is
    given. 409: the letter was sent back or discarded before, or a redrive holds it now."""
    client, asked = call.gateway.client, call.body
    found = await _find(call)
    origin = letters.text(found.record, DEAD_TOPIC)
    target = asked.to or origin
    if not target:
        raise Refused(REFUSED, "The letter does not say from which topic it came: name one with `to`.")
    call.access.check_topic(target, WRITE)
    topic = await client.topic(target)
    headers = (
        revived(found.record.headers) if isinstance(asked.headers, UnsetType) else read_headers(asked.headers)
    )
    if target == origin and not asked.to_all:
        headers = [*[each for each in headers if each[0] != FOR], (FOR, found.info.name.encode())]
    key = found.record.key if isinstance(asked.key, UnsetType) else read_bytes(asked.key)
    value = found.record.value if isinstance(asked.value, UnsetType) else read_value(asked.value)
    replacement = Replacement(target, key, value, headers)
    sent = await one_letter.send_back(client, found.topic_partition, found.record.offset, replacement)
    message_id = message_ids.write(topic.id, sent.partition, sent.offset)
    return LetterSent(message_id, target, sent.partition, sent.offset)


@endpoint(
    "DELETE", LETTER, "Discard one dead letter.",
    Rights(group=READ, topics=READ, by_handler="Read on the dead letters"),
    status=204, admin=True, problems=(NOT_FOUND, LOCK_LOST),
)  # fmt: skip
async def discard_letter(call: Call[Nothing, Nothing]) -> None:
    """It is listed and sent back no more, and stays in its topic until retention takes it."""
    found = await _find(call)
    await one_letter.discard(call.gateway.client, found.topic_partition, found.record.offset)


async def _find(call: Call[Any, Any]) -> _Letter:
    """Raises Refused if the id is not that of a letter of this subscription."""
    client = call.gateway.client
    info = await call.gateway.directory.subscription(call.path["subscription"])
    call.access.check_topic(letters.topic_of(info), READ)
    nowhere = Refused(problems.NOT_FOUND, f"{info.name} has no dead letter with this id.")
    try:
        topic_id, partition, offset = message_ids.read(call.path["message"])
    except WrongMessageId:
        raise nowhere from None
    topic = await client.topic(letters.topic_of(info))
    topic_partition = TopicPartition(topic.name, partition)
    if topic.id != topic_id or partition >= len(topic.partitions):
        raise nowhere
    ends = await offsets.latest(client, [topic_partition])
    records = (
        {} if offset >= ends[topic_partition] else (await browse.read(client, topic_partition, [offset]))[0]
    )
    record = records.get(offset)
    if record is None or letters.text(record, DEAD_SUBSCRIPTION) != info.name:
        raise nowhere
    return _Letter(info, topic_partition, record)
