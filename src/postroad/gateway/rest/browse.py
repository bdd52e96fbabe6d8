"""A topic's messages over REST: from anywhere, through a filter, some at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from postroad.client import offsets, scan
from postroad.client.client import Client
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from postroad.filters import FilterError, compile_filter
from postroad.filters.tokens import CHARACTERS_MAX
from postroad.gateway import pages
from postroad.gateway.push import tail_start
from postroad.gateway.push.tail_start import BadPosition
from postroad.gateway.rest import problems
from postroad.gateway.rest.content import MessageContent, Values, content
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import PageSize, PartitionNumber
from postroad.gateway.rest.problems import MALFORMED, NOT_FOUND, Refused
from postroad.gateway.scans.frames import ScanRequest
from postroad.gateway.security.rights import READ, Rights

PARTITIONS_MAX: Final = 100  # the position of each stands in the answer, and comes back in a URL
BUDGET_MS: Final = 2000
BUDGET_MS_MAX: Final = 10_000
VALUE_BYTES_MAX: Final = 1 << 30


class BrowseQuery(Struct, forbid_unknown_fields=True):
    from_: Annotated[
        str,
        Meta(
            max_length=4096,
            description="beginning, end, an offset (with `partition`), -N for the last N, a time such as "
            "2026-03-01T08:00:00Z, or `next` of the answer before.",
        ),
    ] = field(default="beginning", name="from")
    partition: Annotated[PartitionNumber | None, Meta(description="Only this one.")] = None
    limit: PageSize = 100
    filter: Annotated[
        str,
        Meta(
            max_length=CHARACTERS_MAX,
            description='Only messages that it is true of: `key ~ "order-*" and value.total > 100`.',
        ),
    ] = ""
    committed: Annotated[
        bool, Meta(description="Leave out messages of transactions that are open or were aborted.")
    ] = False
    budget_ms: Annotated[
        int,
        Meta(ge=1, le=BUDGET_MS_MAX, description="How long to look; then `next` says where to go on."),
    ] = BUDGET_MS
    values: Values = "text"
    value_bytes: Annotated[
        Annotated[int, Meta(ge=0, le=VALUE_BYTES_MAX)] | None,
        Meta(description="Longer values are cut to so many bytes."),
    ] = None


class BrowsedMessage(MessageContent, kw_only=True):
    value_bytes: Annotated[int, Meta(description="The size of the whole value.")]
    is_cut: Annotated[bool, Meta(description="`value` has only its first bytes.")]


class BrowseAnswer(Struct):
    """A page ends with `limit` messages, with some 4 MB of content, or when its time is over. `at` is where
    it stopped, as `0:42,1:17` (of each partition the next offset); `next` is the same if there is more up to
    what was the end when the request came, else null."""

    messages: list[BrowsedMessage]
    scanned: Annotated[int, Meta(description="How many messages were looked at.")]
    found: Annotated[int, Meta(description="How many of them are in this page.")]
    at: str
    next: str | None


@endpoint(
    "GET", "/v1/topics/{topic}/messages", "Look through a topic's messages.", Rights(topic=READ),
    problems=(NOT_FOUND, MALFORMED),
)  # fmt: skip
async def browse(call: Call[Nothing, BrowseQuery]) -> BrowseAnswer:
    """Nothing is received or remembered. Messages of several partitions are in the order of their times."""
    request, client = call.query, call.gateway.client
    try:
        wanted = compile_filter(request.filter).matches if request.filter.strip() else None
    except FilterError as error:
        raise Refused(problems.MALFORMED, f"query: filter: {error}") from None
    topic = await client.topic(call.path["topic"])
    isolation = READ_COMMITTED if request.committed else READ_UNCOMMITTED
    starts = await _starts(client, topic, request)
    last = tail_start.last_count(request.from_) if wanted is None else None
    is_whole = last is not None and last <= request.limit
    async with call.gateway.scans.room():
        ends = await offsets.latest(client, list(starts), isolation)
        seconds, unwanted = request.budget_ms / 1000, partial(_is_unwanted, call)
        if wanted is None:
            count = request.limit + (len(starts) if is_whole else 0)
            limits = scan.Limits(count, pages.BYTES_MAX, seconds, unwanted)
            done = await scan.scan(client, starts, ends, None, limits, isolation)
        else:
            asked = ScanRequest(
                topic.name, _numbered(starts), _numbered(ends), request.filter, request.limit,
                pages.BYTES_MAX, seconds, isolation,
            )  # fmt: skip
            done = await call.gateway.helpers.scan(asked, unwanted)
        messages = [_message(topic.id, each, request) for each in done.found]
    messages.sort(key=lambda message: message.timestamp_ms)
    if is_whole and done.is_over:  # of several partitions a few more have come than were asked for
        messages = messages[-last:] if last else []
    at = tail_start.write(_numbered(done.positions))
    return BrowseAnswer(messages, done.scanned, len(messages), at, None if done.is_over else at)


async def _starts(client: Client, topic: Topic, request: BrowseQuery) -> dict[TopicPartition, int]:
    count = len(topic.partitions)
    if request.partition is not None and request.partition >= count:
        raise Refused(
            problems.NOT_FOUND, f"{topic.name} has {count} partitions: there is no {request.partition}."
        )
    partitions = list(range(count)) if request.partition is None else [request.partition]
    if len(partitions) > PARTITIONS_MAX:
        raise Refused(
            problems.MALFORMED, f"{topic.name} has {count} partitions: name one of them with `partition`."
        )
    try:
        wanted = tail_start.last_count(request.from_)
        if wanted is not None:
            found = await tail_start.find_last(client, topic.name, partitions, wanted)
        else:
            found = await tail_start.find(client, topic.name, partitions, request.from_)
    except BadPosition as error:
        raise Refused(problems.MALFORMED, f"query: {error}") from None
    return {TopicPartition(topic.name, partition): offset for partition, offset in found.items()}


def _numbered(offsets_: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {each.partition: offset for each, offset in offsets_.items()}


def _is_unwanted(call: Call[Any, Any]) -> bool:
    return call.client_has_gone or call.gateway.closing.is_set()


def _message(topic_id: bytes, found: scan.Found, request: BrowseQuery) -> BrowsedMessage:
    (topic_partition, record), limit = found, request.value_bytes
    size = len(record.value or b"")
    is_cut = limit is not None and size > limit
    shown = record._replace(value=_cut(record.value or b"", limit or 0)) if is_cut else record
    return BrowsedMessage(
        **content(topic_id, topic_partition, shown, request.values), value_bytes=size, is_cut=is_cut
    )


def _cut(value: bytes, limit: int) -> bytes:
    """The first bytes of it. Of a text there is no broken character at the end."""
    for end in range(limit, max(limit - 4, -1), -1):
        try:
            value[:end].decode()
        except UnicodeDecodeError:
            continue
        return value[:end]
    return value[:limit]
