"""A web hook at work, over REST: its last deliveries, a request to try it, a new secret."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED
from postroad.gateway.rest.webhooks import PATH, WebhookDetails, check_hook, details_of, existing, store
from postroad.gateway.security.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS, READ, Rights
from postroad.gateway.webhooks import challenge, signature
from postroad.gateway.webhooks.deliveries import KEPT
from postroad.gateway.webhooks.sender import Sender
from postroad.gateway.webhooks.supervisor import SUPERVISOR


class DeliveriesQuery(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=KEPT, description="How many at most.")] = KEPT


class WebhookDelivery(Struct):
    """`status` 0: the endpoint did not answer. `reason`: what went wrong; the message comes again then."""

    at_ms: int
    message: Annotated[str, Meta(description="The message's id.")]
    topic: str
    partition: int
    offset: int
    attempt: int
    took_ms: float
    status: int
    delivered: bool
    reason: str


class WebhookDeliveries(Struct):
    deliveries: list[WebhookDelivery]


class WebhookTest(Struct):
    """What the endpoint answered to a request that carries no message."""

    success: bool
    status: int
    reason: str
    took_ms: float


@endpoint(
    "GET", f"{PATH}/deliveries", "List a web hook's last deliveries.",
    Rights(group=DESCRIBE_CONFIGS), problems=(NOT_FOUND,),
)  # fmt: skip
async def list_deliveries(call: Call[Nothing, DeliveriesQuery]) -> WebhookDeliveries:
    """The last 200 of the gateway that answers, the newest first; none from before it started."""
    name = call.path["subscription"]
    await existing(call.gateway, name)
    supervisor = call.request.app.get(SUPERVISOR)
    found = [] if supervisor is None else supervisor.deliveries(name).newest(call.query.limit)
    return WebhookDeliveries([WebhookDelivery(*each) for each in found])


@endpoint(
    "POST", f"{PATH}/test", "Send a request to try the endpoint.",
    Rights(group=ALTER_CONFIGS), problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def test_webhook(call: Call[Nothing, Nothing]) -> WebhookTest:
    """Signed as every other, with `{"type": "postroad.webhook.test", …}` as its body and the header
    `Postroad-Test: true`. No message is touched, and nothing changes."""
    name = call.path["subscription"]
    found = await existing(call.gateway, name)
    check_hook(call.gateway, found)
    began = time.monotonic()
    async with Sender(private=call.gateway.http.webhooks_private) as sender:
        answer = await challenge.send_test(sender, name, found)
    took_ms = (time.monotonic() - began) * 1000
    return WebhookTest(answer.is_success, answer.status, answer.reason, took_ms)


@endpoint(
    "POST", f"{PATH}/rotate-secret", "Give a web hook a new secret.",
    Rights(group=ALTER_CONFIGS, by_handler="Read on the group"), problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def rotate_secret(call: Call[Nothing, Nothing]) -> WebhookDetails:
    """Requests are signed with it from now on; requests that are under way have the old one. It is in this
    answer, and nowhere else."""
    name = call.path["subscription"]
    call.access.check_group(name, READ)
    found = await existing(call.gateway, name)
    secret = signature.new_secret()
    changed = msgspec.structs.replace(found, secret=secret)
    await store(call, name, changed)
    details = details_of(call, changed)
    details.secret = secret
    return details
