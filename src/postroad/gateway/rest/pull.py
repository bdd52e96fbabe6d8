"""Pulling over REST: receive messages, then say what became of each with its receipt, at any gateway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from aiohttp import hdrs
from msgspec import Meta, Struct

from postroad.client.share_message import AckType
from postroad.errors import PostroadError
from postroad.gateway.consumers import consumer_of
from postroad.gateway.gateway import Gateway
from postroad.gateway.receipts import Receipt, WrongReceipt
from postroad.gateway.receiver import Received
from postroad.gateway.rest import problems
from postroad.gateway.rest.content import MessageContent, Values, content
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import LockMs, ReleaseDelayMs
from postroad.gateway.rest.problems import NOT_FOUND, WRONG_RECEIPT, Problem
from postroad.gateway.security.rights import RECEIVE

WAIT_MS_MAX: Final = 60_000
RECEIVE_MAX: Final = 1000
REASON_MAX: Final = 1000  # characters, as nodes take them
SOME_FAILED: Final = {207: "Some receipts were refused; each result says why."}

ReceiptText = Annotated[str, Meta(min_length=1, max_length=2048, description="The message's receipt.")]
ReceiptTexts = Annotated[list[ReceiptText], Meta(min_length=1, max_length=RECEIVE_MAX)]


class Receive(Struct, forbid_unknown_fields=True):
    max: Annotated[int, Meta(ge=1, le=RECEIVE_MAX, description="How many messages at most.")] = 10
    wait_ms: Annotated[
        int,
        Meta(ge=0, le=WAIT_MS_MAX, description="How long to wait for messages; 60 s at most."),
    ] = 0
    lock_ms: Annotated[LockMs | None, Meta(description="By default the subscription's lock.")] = None
    values: Values = "text"


class ReceivedMessage(MessageContent, kw_only=True):
    receipt: str
    deliveries: Annotated[int, Meta(description="1 at the first delivery.")]


class ReceiveAnswer(Struct):
    messages: list[ReceivedMessage]


class Settle(Struct, forbid_unknown_fields=True):
    receipts: ReceiptTexts


class Reject(Struct, forbid_unknown_fields=True):
    receipts: ReceiptTexts
    reason: Annotated[
        str, Meta(max_length=REASON_MAX, description="Why, for the dead letter's header `postroad-reason`.")
    ] = ""


class Release(Struct, forbid_unknown_fields=True):
    receipts: ReceiptTexts
    delay_ms: Annotated[
        ReleaseDelayMs | None,
        Meta(description="Deliver again after this time. Default: the subscription's backoff."),
    ] = None


class Extend(Struct, forbid_unknown_fields=True):
    receipts: ReceiptTexts
    lock_ms: Annotated[
        LockMs | None, Meta(description="From now on; by default the subscription's lock.")
    ] = None


class Settled(Struct):
    """`done`: it is durable. Else nothing was changed, and the problem says why."""

    done: bool
    problem: Problem | None = None


class SettleAnswer(Struct):
    """In the order of the receipts."""

    results: list[Settled]


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/receive", "Receive messages; they are locked for the caller.",
    RECEIVE,
    problems=(NOT_FOUND,),
)  # fmt: skip
async def receive(call: Call[Receive, Nothing]) -> ReceiveAnswer:
    """A message comes again when its lock ends before it is acknowledged. Whoever hangs up while waiting
    gets nothing, and costs nobody anything: what came for them was not delivered, and goes to others."""
    gateway, request = call.gateway, call.body
    agent, owner = call.request.headers.get(hdrs.USER_AGENT, ""), call.access.owner
    gateway.consumers.note(
        call.path["subscription"], consumer_of("rest", call.request.remote or "", agent, owner)
    )
    received = await gateway.receive(
        call.path["subscription"],
        request.max,
        request.wait_ms,
        request.lock_ms,
        lambda: call.client_has_gone,
        access=call.access,
    )
    return ReceiveAnswer([_message(gateway, each, request.values) for each in received])


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/acknowledge", "Acknowledge messages.", RECEIVE,
    answers=SOME_FAILED, problems=(NOT_FOUND,),
)  # fmt: skip
async def acknowledge(call: Call[Settle, Nothing]) -> SettleAnswer | EndpointAnswer:
    """They never come again through this subscription."""
    return await _settle(call.gateway, call.path["subscription"], call.body.receipts, AckType.ACCEPT)


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/release", "Release messages, to be delivered again.", RECEIVE,
    answers=SOME_FAILED, problems=(NOT_FOUND,),
)  # fmt: skip
async def release(call: Call[Release, Nothing]) -> SettleAnswer | EndpointAnswer:
    """A message that is released after its last attempt becomes a dead letter instead."""
    request = call.body
    return await _settle(
        call.gateway, call.path["subscription"], request.receipts, AckType.RELEASE, delay_ms=request.delay_ms
    )


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/extend", "Extend the locks on messages.", RECEIVE,
    answers=SOME_FAILED, problems=(NOT_FOUND,),
)  # fmt: skip
async def extend(call: Call[Extend, Nothing]) -> SettleAnswer | EndpointAnswer:
    """The lock lasts from now for as long as is said here; the receipt stays the same."""
    gateway, name, request = call.gateway, call.path["subscription"], call.body
    lock_ms = (
        (await gateway.directory.subscription(name)).lock_ms if request.lock_ms is None else request.lock_ms
    )
    return await _settle(gateway, name, request.receipts, AckType.RENEW, lock_ms=lock_ms)


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/reject", "Reject messages: they become dead letters.", RECEIVE,
    answers=SOME_FAILED, problems=(NOT_FOUND,),
)  # fmt: skip
async def reject(call: Call[Reject, Nothing]) -> SettleAnswer | EndpointAnswer:
    """For what can't be handled, however often it is tried."""
    request = call.body
    return await _settle(
        call.gateway, call.path["subscription"], request.receipts, AckType.REJECT, reason=request.reason
    )


async def _settle(
    gateway: Gateway,
    subscription: str,
    texts: Sequence[str],
    type_: AckType,
    lock_ms: int | None = None,
    delay_ms: int | None = None,
    reason: str = "",
) -> EndpointAnswer:
    await gateway.directory.subscription(subscription)  # raises if there is none
    receipts = [_read(gateway, subscription, text) for text in texts]
    right = list(dict.fromkeys(receipt for receipt in receipts if receipt is not None))
    outcomes = dict(zip(right, await gateway.settle(right, type_, lock_ms, delay_ms, reason), strict=True))
    results = [
        Settled(False, WRONG_RECEIPT.says("")) if receipt is None else _settled(outcomes[receipt])
        for receipt in receipts
    ]
    return EndpointAnswer(
        SettleAnswer(results), status=None if all(result.done for result in results) else 207
    )


def _read(gateway: Gateway, subscription: str, text: str) -> Receipt | None:
    try:
        receipt = gateway.receipts.read(text)
    except WrongReceipt:
        return None
    return receipt if receipt.subscription == subscription else None


def _settled(error: PostroadError | None) -> Settled:
    return Settled(True) if error is None else Settled(False, problems.of(error))


def _message(gateway: Gateway, received: Received, values: Values) -> ReceivedMessage:
    message, receipt = received
    return ReceivedMessage(
        receipt=gateway.receipts.write(receipt),
        deliveries=message.delivery_count,
        **content(receipt.topic_id, message.topic_partition, message, values),
    )
