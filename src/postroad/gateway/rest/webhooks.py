"""Web hooks over REST: set up, looked at, verified, taken away."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from postroad.gateway.gateway import Gateway
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import TopicName
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED, UNSUPPORTED, Refused
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS, READ, WRITE, Rights
from postroad.gateway.webhooks import challenge, hook, signature
from postroad.gateway.webhooks.hook import (
    CONCURRENCY_MAX,
    CONFIG,
    HEADERS_MAX,
    RATE_MAX,
    SECRET_MAX,
    TIMEOUT_MS_MAX,
    URL_MAX,
    Webhook,
    WrongHook,
)
from postroad.gateway.webhooks.sender import Sender
from postroad.gateway.webhooks.supervisor import SUPERVISOR

PATH: Final = "/v1/subscriptions/{subscription}/webhook"
HOOK: Final = Rights(
    group=ALTER_CONFIGS, topics=READ, by_handler="Read on the group, Write on the `reply_topic`"
)


class WebhookSettings(Struct, forbid_unknown_fields=True):
    url: Annotated[str, Meta(min_length=1, max_length=URL_MAX, description="An https URL.")]
    secret: Annotated[
        Annotated[str, Meta(min_length=1, max_length=SECRET_MAX)] | None,
        Meta(
            description="The secret that signs requests. A new web hook gets one by default, in the answer."
        ),
    ] = None
    concurrency: Annotated[
        int, Meta(ge=1, le=CONCURRENCY_MAX, description="Concurrent requests from each gateway.")
    ] = 8
    rate: Annotated[
        float, Meta(ge=0, le=RATE_MAX, description="Messages a second, from each gateway; 0: no limit.")
    ] = 0
    timeout_ms: Annotated[
        int, Meta(ge=1, le=TIMEOUT_MS_MAX, description="How long the endpoint has for its answer.")
    ] = 10_000
    headers: Annotated[
        dict[str, str], Meta(max_length=HEADERS_MAX, description="Sent with each request.")
    ] = {}
    reply_topic: Annotated[
        TopicName | None,
        Meta(
            description="Publish the body of each 2xx there, with the acknowledgement or not at all. The "
            "nodes need kafka.transactions."
        ),
    ] = None
    enabled: bool = True


class EndpointHealth(Struct):
    """Counts begin when the gateway does."""

    state: Annotated[
        str,
        Meta(description="closed: in use; open: left alone; half-open: tried."),
    ]
    in_flight: int
    delivered: int
    failed: int
    last_error: str


class WebhookDetails(Struct, omit_defaults=True):
    url: str
    concurrency: int
    rate: float
    timeout_ms: int
    headers: dict[str, str]
    enabled: bool
    verified: Annotated[bool, Meta(description="The endpoint has echoed its challenge.")]
    reply_topic: Annotated[str, Meta(description="Where its answers go; not there: nowhere.")] = ""
    note: Annotated[str, Meta(description="Why the web hook is off or not verified.")] = ""
    secret: Annotated[str | None, Meta(description="Only if this request generated it.")] = None
    health: Annotated[EndpointHealth | None, Meta(description="As seen by the gateway that answers.")] = None


@endpoint("GET", PATH, "Get a web hook.", Rights(group=DESCRIBE_CONFIGS), problems=(NOT_FOUND,))
async def get_webhook(call: Call[Nothing, Nothing]) -> WebhookDetails:
    return details_of(call, await existing(call.gateway, call.path["subscription"]))


@endpoint(
    "PUT", PATH, "Create or change a web hook.", HOOK,
    answers={201: "It is new."}, problems=(NOT_FOUND, REFUSED, UNSUPPORTED),
)  # fmt: skip
async def put_webhook(call: Call[WebhookSettings, Nothing]) -> WebhookDetails | EndpointAnswer:
    """The endpoint is sent a challenge, and gets messages once it has echoed it. If it does not, the web hook
    is kept with a note, and can be verified later."""
    name, new = call.path["subscription"], call.body
    call.access.check_group(name, READ)
    before = await _find(call.gateway, name)
    secret = new.secret or (before.secret if before is not None else signature.new_secret())
    known = before is not None and before.url == new.url and before.verified
    wanted = Webhook(
        new.url,
        secret,
        new.concurrency,
        new.rate,
        new.timeout_ms,
        new.headers,
        new.reply_topic or "",
        new.enabled,
        verified=known,
        by=call.access.owner,
    )
    check_hook(call.gateway, wanted)
    if wanted.reply_topic:
        await _check_replies(call.gateway, call.access, name, wanted.reply_topic)
    if wanted.enabled and not known:
        wanted = await _challenged(call.gateway, name, wanted)
    await store(call, name, wanted)
    details = details_of(call, wanted)
    if new.secret is None and before is None:
        details.secret = secret
    return EndpointAnswer(details, status=200 if before is not None else 201)


@endpoint("POST", f"{PATH}/verify", "Send the challenge again.", HOOK, problems=(NOT_FOUND, REFUSED))
async def verify_webhook(call: Call[Nothing, Nothing]) -> WebhookDetails:
    """The web hook is on if the endpoint echoes it, also if it was turned off before."""
    name = call.path["subscription"]
    call.access.check_group(name, READ)
    found = await existing(call.gateway, name)
    check_hook(call.gateway, found)
    if found.reply_topic:
        call.access.check_topic(found.reply_topic, WRITE)
    on = msgspec.structs.replace(found, enabled=True, by=call.access.owner)
    tried = await _challenged(call.gateway, name, on)
    await store(call, name, tried)
    return details_of(call, tried)


@endpoint(
    "DELETE", PATH, "Delete a web hook.", Rights(group=ALTER_CONFIGS), status=204, problems=(NOT_FOUND,)
)
async def delete_webhook(call: Call[Nothing, Nothing]) -> None:
    """Messages stay in the subscription, for other consumers."""
    name = call.path["subscription"]
    await existing(call.gateway, name)
    await store(call, name, None)


async def _find(gateway: Gateway, name: str) -> Webhook | None:
    """None also for one that somebody else has written, and that can't be read."""
    gateway.directory.forget(name)
    info = await gateway.directory.subscription(name)
    try:
        return hook.read(info.config.get(CONFIG, ""))
    except WrongHook:
        return None


async def existing(gateway: Gateway, name: str) -> Webhook:
    found = await _find(gateway, name)
    if found is None:
        raise Refused(NOT_FOUND, f"The subscription {name} has no web hook.")
    return found


def check_hook(gateway: Gateway, wanted: Webhook) -> None:
    try:
        hook.check(wanted, private=gateway.http.webhooks_private)
    except WrongHook as error:
        raise Refused(REFUSED, str(error)) from None


async def _check_replies(gateway: Gateway, access: Access, name: str, topic: str) -> None:
    """Raises Refused, TopicAuthorizationFailed; UnsupportedVersion where the nodes have no transactions."""
    access.check_topic(topic, WRITE)
    if topic in (await gateway.directory.subscription(name)).topics:
        text = f"The answers would come back: the subscription {name} reads {topic} itself."
        raise Refused(REFUSED, text)
    await gateway.transactions.check_on()


async def _challenged(gateway: Gateway, name: str, wanted: Webhook) -> Webhook:
    async with Sender(private=gateway.http.webhooks_private) as sender:
        note = await challenge.verify(sender, name, wanted)
    return msgspec.structs.replace(wanted, verified=not note, note=note)


async def store(call: Call[Any, Any], name: str, wanted: Webhook | None) -> None:
    text = None if wanted is None else hook.write(wanted)
    await call.gateway.directory.alter(name, {CONFIG: text})
    supervisor = call.request.app.get(SUPERVISOR)
    if supervisor is not None:
        supervisor.look_now()


def details_of(call: Call[Any, Any], found: Webhook) -> WebhookDetails:
    supervisor = call.request.app.get(SUPERVISOR)
    health = supervisor.health(call.path["subscription"]) if supervisor is not None else None
    return WebhookDetails(
        found.url,
        found.concurrency,
        found.rate,
        found.timeout_ms,
        dict(found.headers),
        found.enabled,
        found.verified,
        found.reply_topic,
        found.note,
        health=EndpointHealth(*health) if health is not None else None,
    )
