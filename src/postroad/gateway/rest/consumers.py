"""Who consumes a subscription: members that are Kafka consumers, and callers over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroad.client import subscriptions
from postroad.errors import GroupIdNotFound
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.problems import NOT_FOUND
from postroad.gateway.security.rights import DESCRIBE, Rights


class ConsumerDetails(Struct, kw_only=True):
    """`client` is the name that it gave itself: Kafka's client.id, or a User-Agent."""

    kind: Annotated[
        Literal["kafka", "rest", "sqs", "websocket"], Meta(description="In which way it receives.")
    ]
    id: Annotated[str | None, Meta(description="Of a Kafka member, as in a message's `held_by`.")] = None
    client: str
    address: str
    user: Annotated[str | None, Meta(description="With security, over HTTP: in whose name.")] = None
    topics: list[str] = []
    partitions: Annotated[Sequence[tuple[str, int]], Meta(description="Topic and partition.")] = ()
    connections: Annotated[int, Meta(description="Streams that are open now.")] = 0
    last_seen_ms: Annotated[int | None, Meta(description="When it last received, over HTTP.")] = None


class ConsumerList(Struct):
    consumers: list[ConsumerDetails]


@endpoint(
    "GET", "/v1/subscriptions/{subscription}/consumers", "List who consumes a subscription.",
    Rights(group=DESCRIBE, topics=DESCRIBE), problems=(NOT_FOUND,),
)  # fmt: skip
async def list_consumers(call: Call[Nothing, Nothing]) -> ConsumerList:
    """Kafka consumers that are connected now, and those over HTTP that the gateway that answers has seen
    within the last 90 seconds, or that hold a stream open there."""
    gateway, name = call.gateway, call.path["subscription"]
    await gateway.directory.subscription(name)  # raises if there is none
    try:
        members = (await subscriptions.describe(gateway.client, name)).members
    except GroupIdNotFound:
        members = ()  # nobody has joined it yet
    found = [
        ConsumerDetails(
            kind="kafka", id=member.id, client=member.client_id, address=member.host.lstrip("/"),
            topics=list(member.topics), partitions=list(member.partitions),
        )
        for member in members
    ]  # fmt: skip
    over_http = [
        ConsumerDetails(
            kind=seen.consumer.dialect,  # type: ignore[arg-type]  # dialects that receive are these
            client=seen.consumer.client, address=seen.consumer.address, user=seen.consumer.user or None,
            connections=seen.connections, last_seen_ms=seen.last_seen_ms,
        )
        for seen in gateway.consumers.of(name)
    ]  # fmt: skip
    return ConsumerList([*found, *over_http])
