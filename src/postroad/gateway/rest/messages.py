"""Messages looked at: those of a subscription that wait or are in work, and one by its id with its fate."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from postroad.client import browse, offsets, subscriptions
from postroad.client.browse import Following, Peeked
from postroad.client.metadata import TopicPartition
from postroad.errors import GroupIdNotFound, UnknownTopicId, UnknownTopicOrPartition
from postroad.gateway import message_ids, pages
from postroad.gateway.directory import SubscriptionInfo
from postroad.gateway.gateway import Gateway
from postroad.gateway.message_ids import WrongMessageId
from postroad.gateway.receipts import holder
from postroad.gateway.rest import letters, problems
from postroad.gateway.rest.content import MessageContent, Values, content
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import Offset, PageSize, PartitionNumber, TopicName
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED, Refused
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import DESCRIBE, READ, Rights
from postroad.wire.peek import PeekRange, PeekResponse
from postroad.wire.records import Record

SUBSCRIPTIONS_AT_ONCE: Final = 8
CURSOR_PATTERN: Final = "^[a-zA-Z0-9._-]{1,249}:[0-9]{1,9}:[0-9]{1,18}$"

Status = Literal["pending", "in_flight", "acknowledged", "dead", "done"]
# `settling` is decided and on its way to the disk: until it is there it may still come again.
STATUSES: Final[dict[str, Status]] = {
    "available": "pending",
    "waiting": "pending",
    "delayed": "pending",
    "held": "in_flight",
    "settling": "in_flight",
    "pledged": "in_flight",  # accepted in a transaction: done when it commits, else it comes again
    "dying": "dead",
    "done": "done",
}
# Of several subscriptions the one that is least done with it tells how it stands with the message.
_LEAST_DONE: Final[tuple[Status, ...]] = ("in_flight", "pending", "dead", "done", "acknowledged")


class PeekQuery(Struct, forbid_unknown_fields=True):
    limit: PageSize = 20
    after: Annotated[
        Annotated[str, Meta(pattern=CURSOR_PATTERN)] | None,
        Meta(description="`next` of the page before; without `offset`."),
    ] = None
    topic: TopicName | None = None
    partition: Annotated[PartitionNumber | None, Meta(description="Only with `topic`.")] = None
    offset: Annotated[Offset | None, Meta(description="From this offset on; only with `partition`.")] = None
    values: Values = "text"


class PeekedMessage(MessageContent, kw_only=True):
    state: Literal["available", "waiting", "delayed", "held", "settling", "pledged", "dying"]
    deliveries: int
    available_at_ms: Annotated[int | None, Meta(description="Of a delayed one.")]
    held_by: Annotated[
        str | None, Meta(description="The id of the Kafka member, or a label for consumers over HTTP.")
    ]
    held_until_ms: int | None


class PeekAnswer(Struct):
    """A page ends with some 4 MB of content, however many messages were asked for. `next` may be there though
    no message follows."""

    messages: list[PeekedMessage]
    next: str | None


class MessageQuery(Struct, forbid_unknown_fields=True):
    values: Values = "text"


class DeadLetterPlace(Struct):
    id: str
    topic: str
    reason: str


class StateInSubscription(Struct, kw_only=True):
    """`acknowledged`: it was acknowledged, or passed over by seek, purge or a later start. `dead`: it is
    among the dead letters, or on its way there. `done`: one of both, and which can't be told any more."""

    subscription: str
    status: Status
    deliveries: int = 0
    available_at_ms: int | None = None
    held_until_ms: int | None = None
    dead_letter: DeadLetterPlace | None = None


class MessageDetails(MessageContent, kw_only=True):
    status: Annotated[Status, Meta(description="The state in the subscription that has progressed least.")]
    subscriptions: list[StateInSubscription]
    acked_by: Annotated[list[str], Meta(description="The subscriptions that have acknowledged it.")]


@endpoint(
    "GET", "/v1/subscriptions/{subscription}/messages", "Read messages without receiving them.",
    Rights(group=DESCRIBE, topics=READ),
    problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def peek(call: Call[Nothing, PeekQuery]) -> PeekAnswer:
    """Those that the subscription is not done with, partition after partition."""
    client, name, request = call.gateway.client, call.path["subscription"], call.query
    if (request.partition is not None and request.topic is None) or (
        request.offset is not None and request.partition is None
    ):
        raise Refused(problems.REFUSED, "`partition` needs `topic`, and `offset` needs `partition`.")
    if request.after is not None and request.offset is not None:
        raise Refused(problems.REFUSED, "Send `after` or `offset`, not both.")
    begin, offset = _begin(request)
    topic_partitions = [
        topic_partition
        for topic_partition in sorted(await subscriptions.positions(client, name))
        if request.topic in (None, topic_partition.topic)
        and request.partition in (None, topic_partition.partition)
        and topic_partition >= begin
    ]
    starts = {} if offset is None else {begin: offset}
    async with call.gateway.pages.room():
        found, following = await browse.look(
            client, name, topic_partitions, starts, request.limit, pages.BYTES_MAX
        )
        ids = {
            topic: (await client.topic(topic)).id for topic in {each.topic_partition.topic for each in found}
        }
        peeked = [_peeked(ids[each.topic_partition.topic], each, request.values) for each in found]
    return PeekAnswer(peeked, None if following is None else _cursor(following))


@endpoint(
    "GET", "/v1/messages/{message}", "Get a message by its id, with its state in each subscription.",
    Rights(by_handler="Read on the topic of the message"),
    problems=(NOT_FOUND,),
)  # fmt: skip
async def get_message(call: Call[Nothing, MessageQuery]) -> MessageDetails:
    gateway = call.gateway
    try:
        topic_id, partition, offset = message_ids.read(call.path["message"])
    except WrongMessageId:
        raise Refused(problems.NOT_FOUND, "No message has this id.") from None
    topic = await gateway.topic_ids.topic(topic_id)
    if not call.access.may_topic(topic.name, DESCRIBE):
        raise UnknownTopicId  # as of a topic that is not there, or ids could be found by guessing
    call.access.check_topic(topic.name, READ)
    topic_partition = TopicPartition(topic.name, partition)
    record = await _read(gateway, topic_partition, offset)
    states = await _states(call, topic_partition, record)
    statuses = {state.status for state in states}
    return MessageDetails(
        **content(topic_id, topic_partition, record, call.query.values),
        status=next((status for status in _LEAST_DONE if status in statuses), "pending"),
        subscriptions=states,
        acked_by=[state.subscription for state in states if state.status == "acknowledged"],
    )


def _begin(request: PeekQuery) -> tuple[TopicPartition, int | None]:
    """The first partition to look at, and the offset there."""
    if request.after is None:
        return TopicPartition(request.topic or "", request.partition or 0), request.offset
    topic, partition, offset = request.after.split(":")
    return TopicPartition(topic, int(partition)), int(offset)


def _cursor(following: Following) -> str:
    (topic, partition), offset = following
    return f"{topic}:{partition}:{offset}"


def _peeked(topic_id: bytes, found: Peeked, values: Values) -> PeekedMessage:
    """A message that could not be read in time, or is deleted from the log by now, has no content."""
    record = found.record or Record(found.offset, -1, None, None)
    state = found.state
    return PeekedMessage(
        **content(topic_id, found.topic_partition, record, values),
        state=state.state,  # type: ignore[arg-type]  # the node's words are these
        deliveries=state.deliveries,
        available_at_ms=state.available_at_ms or None,
        held_by=holder(state.member),
        held_until_ms=state.until_ms or None,
    )


async def _read(gateway: Gateway, topic_partition: TopicPartition, offset: int) -> Record:
    """Raises Refused if it is not there, or not any more."""
    client = gateway.client
    await client.leader(*topic_partition)  # raises if there is no such partition
    first, last = (
        await offsets.earliest(client, [topic_partition]),
        await offsets.latest(client, [topic_partition]),
    )
    if first[topic_partition] <= offset < last[topic_partition]:
        records, _ = await browse.read(client, topic_partition, [offset])
        found = records.get(offset)
        if found is not None:
            return found
    raise Refused(problems.NOT_FOUND, "The message does not exist, or no longer exists.")


# --- what became of it


async def _states(
    call: Call[Any, Any], topic_partition: TopicPartition, record: Record
) -> list[StateInSubscription]:
    """In the subscriptions that the caller may describe."""
    gateway, access = call.gateway, call.access
    bound = asyncio.Semaphore(SUBSCRIPTIONS_AT_ONCE)

    async def look(name: str) -> StateInSubscription | None:
        async with bound:
            try:
                info = await gateway.directory.subscription(name)
                if topic_partition.topic not in info.topics:
                    return None
                return await _state(gateway, access, info, topic_partition, record)
            except (GroupIdNotFound, UnknownTopicOrPartition):
                return None  # it is not there, or has never been on this partition

    names = [name for name in await gateway.directory.names() if access.may_group(name, DESCRIBE)]
    found = await asyncio.gather(*map(look, names))
    return [state for state in found if state is not None]


async def _state(
    gateway: Gateway,
    access: Access,
    info: SubscriptionInfo,
    topic_partition: TopicPartition,
    record: Record,
) -> StateInSubscription:
    answer = await subscriptions.peek(gateway.client, info.name, topic_partition, record.offset, 1)
    found = _range_of(answer, record.offset)
    state = StateInSubscription(
        subscription=info.name,
        status=STATUSES.get(found.state, "pending"),
        deliveries=found.deliveries,
        available_at_ms=found.available_at_ms or None,
        held_until_ms=found.until_ms or None,
    )
    if state.status in ("done", "dead"):
        letter, certain = await letters.find(gateway, info, topic_partition, record)
        if letter is not None and access.may_topic(letter.topic, DESCRIBE):
            state.dead_letter = DeadLetterPlace(letter.id, letter.topic, letter.reason)
        if state.status == "done" and certain:
            state.status = "acknowledged" if letter is None else "dead"
    return state


def _range_of(answer: PeekResponse, offset: int) -> PeekRange:
    if offset >= answer.start_offset:
        for found in answer.ranges:
            if found.first <= offset <= found.last:
                return found
    return PeekRange(offset, offset, "done")
