"""Transactions over REST: publish messages and acknowledge others in one request, all or nothing.

There is no Idempotency-Key: what remembers one for publishing is the log of a partition, under a producer id
made from the key, and a transaction has its own. A request that acknowledges needs none: repeated after its
success it is refused, for its receipts hold nothing any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from postroad.client.metadata import Topic
from postroad.gateway.gateway import Gateway
from postroad.gateway.receipts import Receipt, WrongReceipt
from postroad.gateway.rest import problems
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import TopicName
from postroad.gateway.rest.problems import (
    CONFLICT,
    LOCK_LOST,
    NOT_FOUND,
    OUTCOME_UNKNOWN,
    REFUSED,
    TOO_LARGE,
    UNSUPPORTED,
    WRONG_RECEIPT,
    Refused,
)
from postroad.gateway.rest.publish import (
    MESSAGES_MAX,
    NewMessage,
    Published,
    message_of,
    published_of,
)
from postroad.gateway.rest.pull import RECEIVE_MAX, ReceiptText
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import WRITE, Rights, check_receive
from postroad.gateway.transactions import EntryRefused, OutcomeUnknown, ToPublish

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
NO_KEY: Final = (
    "A transaction takes no Idempotency-Key. One that acknowledges is carried out once without: when it has "
    "succeeded its receipts hold nothing any more, and a repetition is refused."
)
EMPTY: Final = "The transaction is empty: name receipts in `acknowledge`, messages in `publish`, or both."
UNKNOWN: Final = (
    "The commit was asked for, and no answer came. Look for the messages, or receive again: what was "
    "acknowledged comes again if, and only if, it was not committed."
)


class MessageToTopic(NewMessage, kw_only=True, forbid_unknown_fields=True):
    topic: TopicName


class NewTransaction(Struct, forbid_unknown_fields=True):
    """One of both lists may be left out."""

    acknowledge: Annotated[
        list[ReceiptText],
        Meta(max_length=RECEIVE_MAX, description="Receipts of messages, of any subscriptions."),
    ] = []
    publish: Annotated[
        list[MessageToTopic], Meta(max_length=MESSAGES_MAX, description="Messages, to any topics.")
    ] = []


class TransactionAnswer(Struct):
    """`messages` are in the order of `publish`."""

    acknowledged: int
    messages: list[Published]


@endpoint(
    "POST", "/v1/transactions", "Publish messages and acknowledge others, all or nothing.",
    Rights(by_handler="Read on groups and topics of the receipts, Write on the topics of `publish`"),
    problems=(
        NOT_FOUND, CONFLICT, LOCK_LOST, TOO_LARGE, REFUSED, WRONG_RECEIPT, UNSUPPORTED, OUTCOME_UNKNOWN,
    ),
)  # fmt: skip
async def transact(call: Call[NewTransaction, Nothing]) -> TransactionAnswer:
    """The answer leaves when it is committed: readers with `read_committed` see the messages, and what was
    acknowledged never comes again. Any problem but `outcome-unknown` means that nothing of it has happened;
    messages that were already acknowledged by then come again, as after a failed delivery.

    It needs nodes whose `kafka.transactions` is not off."""
    if IDEMPOTENCY_KEY in call.request.headers:
        raise Refused(problems.REFUSED, NO_KEY)
    receipts = _receipts(call.gateway, call.body.acknowledge)
    return await carry_out(call.gateway, call.access, receipts, call.body.publish)


async def carry_out(
    gateway: Gateway, access: Access, receipts: Sequence[Receipt], publish: Sequence[MessageToTopic]
) -> TransactionAnswer:
    """Raises Refused, or a PostroadError; nothing of it has happened then, unless the problem says so."""
    if not receipts and not publish:
        raise Refused(problems.REFUSED, EMPTY)
    for name in dict.fromkeys(receipt.subscription for receipt in receipts):
        await check_receive(access, gateway.directory, name)
        await gateway.directory.subscription(name)
    messages = await _messages(gateway, access, publish)
    try:
        sent = await gateway.transactions.run(receipts, messages)
    except EntryRefused as refused:
        raise Refused(problems.kind_of(refused.error), str(refused)) from None
    except OutcomeUnknown:
        raise Refused(problems.OUTCOME_UNKNOWN, UNKNOWN) from None
    gateway.metrics.published.note(len(sent))
    gateway.metrics.messages_in.add(len(sent))
    return TransactionAnswer(len(receipts), [published_of(each) for each in sent])


def _receipts(gateway: Gateway, texts: Sequence[str]) -> list[Receipt]:
    """Each once. Raises Refused."""
    found: dict[Receipt, None] = {}
    for index, text in enumerate(texts):
        try:
            found[gateway.receipts.read(text)] = None
        except WrongReceipt:
            detail = f"acknowledge[{index}] is no receipt that a gateway of this cluster has given."
            raise Refused(problems.WRONG_RECEIPT, detail) from None
    return list(found)


async def _messages(gateway: Gateway, access: Access, wanted: Sequence[MessageToTopic]) -> list[ToPublish]:
    topics: dict[str, Topic] = {}
    found: list[ToPublish] = []
    messages = [message_of(new) for new in wanted]  # all that can be refused without asking anybody
    for name in dict.fromkeys(new.topic for new in wanted):
        access.check_topic(name, WRITE)
    for new, message in zip(wanted, messages, strict=True):
        if new.topic not in topics:
            topics[new.topic] = await gateway.topic_to_write(access, new.topic)
        if message.partition is not None:
            topics[new.topic].check(message.partition)
        value, key, headers, timestamp, partition = message
        found.append(ToPublish(topics[new.topic], value, key, headers, timestamp, partition))
    return found
