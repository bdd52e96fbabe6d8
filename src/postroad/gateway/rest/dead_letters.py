"""Dead letters over REST: listed, and sent back by redrives that run in the background."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, structs

from postroad.client import offsets
from postroad.client.metadata import Topic, TopicPartition
from postroad.errors import UnknownTopicOrPartition
from postroad.gateway import message_ids
from postroad.gateway.message_ids import WrongMessageId
from postroad.gateway.redrives import AlreadyRunning, Task, TooMany
from postroad.gateway.redrives.task import State, shown_request
from postroad.gateway.rest import letters, problems
from postroad.gateway.rest.content import MessageContent, Values, content
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import PageSize, TimeMs, TopicName
from postroad.gateway.rest.problems import CONFLICT, FORBIDDEN, NOT_FOUND, REFUSED, UNAVAILABLE, Refused
from postroad.gateway.rest.redrive_work import KIND, HeaderName, RedriveEdit, RedriveRequest, ShortText
from postroad.gateway.security.rights import DESCRIBE, READ, WRITE, Rights
from postroad.wire import header_names
from postroad.wire.records import Record

CURSOR_PATTERN: Final = "^[0-9]{1,9}:[0-9]{1,18}$"
Reason = Literal["attempts", "rejected", "expired", "invalid"]
CHOSEN_MAX: Final = 100
LetterId = Annotated[str, Meta(pattern=message_ids.PATTERN)]


class DeadLettersQuery(Struct, forbid_unknown_fields=True):
    limit: PageSize = 100
    after: Annotated[
        Annotated[str, Meta(pattern=CURSOR_PATTERN)] | None,
        Meta(description="`next` of the page before."),
    ] = None
    values: Values = "text"


class DeadLetter(MessageContent, kw_only=True):
    """The letter, with where the message was before. What it does not say is null."""

    reason: str
    reason_text: Annotated[str | None, Meta(description="Why, in words; null if nobody said.")]
    origin_topic: str
    origin_partition: int | None
    origin_offset: int | None
    deliveries: int | None
    died_at_ms: int | None


class DeadLetterList(Struct):
    """A page ends with some 4 MB of content, however many letters were asked for. `next` may be there though
    few letters came, or none: others are between."""

    letters: list[DeadLetter]
    next: str | None


class NewRedrive(Struct, forbid_unknown_fields=True):
    """Which letters: all conditions hold; without any it is all of them."""

    to: Annotated[TopicName | None, Meta(description="Default: the topic a letter came from.")] = None
    to_all: Annotated[
        bool,
        Meta(description="For all subscriptions of the topic, not only for the one in which it died."),
    ] = False
    reasons: Annotated[list[Reason], Meta(max_length=4)] = []
    headers: Annotated[
        dict[HeaderName, ShortText], Meta(max_length=20, description="Only letters with these headers.")
    ] = {}
    key_matches: Annotated[
        Annotated[str, Meta(max_length=1000)] | None, Meta(description="With * and ?.")
    ] = None
    died_since_ms: TimeMs = 0
    rate: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000)] | None, Meta(description="Letters a second.")
    ] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=2**53)] | None, Meta(description="At most this many.")] = (
        None
    )
    dry_run: Annotated[bool, Meta(description="Only count.")] = False
    letters: Annotated[
        list[LetterId], Meta(max_length=CHOSEN_MAX, description="Only those with these ids. Empty: all.")
    ] = []
    edit: RedriveEdit | None = None
    discard: Annotated[bool, Meta(description="Strike them off, and send them nowhere.")] = False


class RedriveState(Struct):
    """The letters of a redrive: `total` when it began, `seen` so far, `sent` back (with `discard`: struck
    off), and `kept` because they don't match; `failed` counts others by why they could not be sent."""

    id: str
    subscription: str
    dead_letter_topic: str
    dry_run: bool
    discard: bool
    began_at_ms: int
    state: State
    total: int
    seen: int
    sent: int
    kept: int
    failed: dict[str, int]
    failure: str | None


class RedriveList(Struct):
    redrives: list[RedriveState]


@endpoint(
    "GET", "/v1/subscriptions/{subscription}/dead-letters", "List dead letters that were not sent back.",
    Rights(group=DESCRIBE, by_handler="Read on the dead letters"),
    problems=(NOT_FOUND,),
)  # fmt: skip
async def list_dead_letters(call: Call[Nothing, DeadLettersQuery]) -> DeadLetterList:
    gateway, request = call.gateway, call.query
    info = await gateway.directory.subscription(call.path["subscription"])
    call.access.check_topic(letters.topic_of(info), READ)
    try:
        topic = await gateway.client.topic(letters.topic_of(info))
    except UnknownTopicOrPartition:
        return DeadLetterList([], None)
    partition, offset = map(int, (request.after or "0:0").split(":"))
    async with gateway.pages.room():
        page = await letters.page(gateway, info.name, topic, partition, offset, request.limit)
        found = [
            _letter(topic.id, topic_partition, letter, request.values)
            for topic_partition, letter in page.letters
        ]
    following = page.following
    return DeadLetterList(found, None if following is None else f"{following[0]}:{following[1]}")


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/dead-letters/redrive", "Send dead letters back.",
    Rights(group=READ, topics=READ, by_handler="Read on the dead letters, Write where they go"),
    status=202, problems=(NOT_FOUND, CONFLICT, REFUSED, UNAVAILABLE),
)  # fmt: skip
async def redrive(call: Call[NewRedrive, Nothing]) -> RedriveState | EndpointAnswer:
    """As new messages without the marks of death, delay and expiry, for the subscription in which they died:
    others pass them over, unless `to_all` is given or `to` names another topic. `edit` changes each before;
    with `discard` they are struck off instead, which can't be undone and takes an admin's key. It runs in the
    background; where `Location` says is how far it is, at any gateway. If this gateway ends another goes on
    with it. What arrives meanwhile waits for the next. A subscription has one redrive at a time."""
    gateway, asked = call.gateway, call.body
    info = await gateway.directory.subscription(call.path["subscription"])
    call.access.check_topic(letters.topic_of(info), READ)
    if asked.to is not None:
        call.access.check_topic(asked.to, WRITE)
    topic = await gateway.client.topic(letters.topic_of(info))
    if asked.to is not None:
        await gateway.client.topic(asked.to)
    if asked.discard and not call.access.admin and not call.access.is_guarded:
        raise Refused(FORBIDDEN, "To discard letters takes an admin key.")
    if asked.discard and (asked.to is not None or asked.edit is not None):
        raise Refused(REFUSED, "Letters that are discarded go nowhere: leave out `to` and `edit`.")
    chosen = [_place(topic, each) for each in asked.letters]
    topic_partitions = [TopicPartition(topic.name, part.number) for part in topic.partitions]
    ends = {
        topic_partition.partition: end
        for topic_partition, end in (await offsets.latest(gateway.client, topic_partitions)).items()
    }
    request = RedriveRequest(topic.name, ends, **{**structs.asdict(asked), "letters": chosen})
    try:
        task = await gateway.redrives.start(info.name, KIND, request, gateway.now_ms(), by=call.access.owner)
    except AlreadyRunning:
        raise Refused(
            CONFLICT, "A redrive of this subscription is running; wait for it, or cancel it."
        ) from None
    except TooMany:
        raise Refused(
            UNAVAILABLE, "Too many redrives are running here; try again when one has finished."
        ) from None
    return EndpointAnswer(_state(info.name, task), headers={"Location": f"/v1/redrives/{task.id}"})


@endpoint("GET", "/v1/redrives", "List redrives.", Rights(by_handler="those of groups that may be described"))
async def list_redrives(call: Call[Nothing, Nothing]) -> RedriveList:
    """The last ten redrives of each subscription, the newest first."""
    return RedriveList(
        [
            _state(subscription, task)
            for subscription, task in await call.gateway.redrives.all()
            if task.kind == KIND and call.access.may_group(subscription, DESCRIBE)
        ]
    )


@endpoint(
    "GET",
    "/v1/redrives/{redrive}",
    "Get a redrive's progress.",
    Rights(by_handler="Describe on its group"),
    problems=(NOT_FOUND,),
)
async def get_redrive(call: Call[Nothing, Nothing]) -> RedriveState:
    return _state(*await _find(call))


@endpoint(
    "POST",
    "/v1/redrives/{redrive}/cancel",
    "Cancel a redrive.",
    Rights(by_handler="Read on its group"),
    problems=(NOT_FOUND,),
)
async def cancel_redrive(call: Call[Nothing, Nothing]) -> RedriveState:
    """What it has sent back stays so. One that has ended stays as it is. `cancelling`: the gateway that
    carries it out has not answered yet."""
    subscription, task = await _find(call)
    call.access.check_group(subscription, READ)
    return _state(subscription, await call.gateway.redrives.cancel(subscription, task.id) or task)


async def _find(call: Call[Nothing, Nothing]) -> tuple[str, Task]:
    found = await call.gateway.redrives.find(call.path["redrive"])
    if found is None or found[1].kind != KIND or not call.access.may_group(found[0], DESCRIBE):
        raise Refused(problems.NOT_FOUND, "No such redrive, or it has been forgotten.")
    return found


def _place(topic: Topic, message_id: str) -> str:
    """`partition:offset` of a letter. Raises Refused."""
    try:
        topic_id, partition, offset = message_ids.read(message_id)
    except WrongMessageId:
        topic_id, partition, offset = b"", 0, 0
    if topic_id != topic.id or partition >= len(topic.partitions):
        raise Refused(REFUSED, f"letters: {message_id} is no letter of this subscription.")
    return f"{partition}:{offset}"


def _state(subscription: str, task: Task) -> RedriveState:
    request, progress = shown_request(task, RedriveRequest, RedriveRequest("", {})), task.progress
    return RedriveState(
        task.id, subscription, request.dead_letter_topic, request.dry_run, request.discard, task.began_ms,
        task.state,
        progress.total, progress.seen, progress.sent, progress.kept, dict(progress.failed), task.failure,
    )  # fmt: skip


def _letter(topic_id: bytes, topic_partition: TopicPartition, record: Record, values: Values) -> DeadLetter:
    return DeadLetter(
        **content(topic_id, topic_partition, record, values),
        reason=letters.text(record, header_names.DEAD_REASON),
        reason_text=letters.text(record, header_names.REASON) or None,
        origin_topic=letters.text(record, header_names.DEAD_TOPIC),
        origin_partition=letters.number(record, header_names.DEAD_PARTITION),
        origin_offset=letters.number(record, header_names.DEAD_OFFSET),
        deliveries=letters.number(record, header_names.DEAD_DELIVERIES),
        died_at_ms=letters.number(record, header_names.DEAD_AT),
    )
