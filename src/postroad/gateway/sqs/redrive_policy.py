"""RedrivePolicy and RedriveAllowPolicy: which queue takes the dead letters of which.

A queue's policy is two configs of its subscription: after how many receives a message dies, and the topic
that takes the letter. The node keeps it; nothing is looked after here.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import WRITE
from postroad.gateway.sqs import attributes, names
from postroad.gateway.sqs.errors import SqsError
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.service import Service
from postroad.wire.subscription_names import DEAD_LETTER_TOPIC_CONFIG, DELIVERY_LIMIT_CONFIG

RECEIVES_MAX: Final = 1000
SOURCES_MAX: Final = 10
FOREVER: Final = "0"


class RedrivePolicy(Struct):
    target_arn: str = field(name="deadLetterTargetArn")
    receives: int = field(name="maxReceiveCount")


class AllowPolicy(Struct):
    permission: Literal["allowAll", "denyAll", "byQueue"] = field(name="redrivePermission")
    source_arns: list[str] = field(default_factory=list, name="sourceQueueArns")


_policy_decoder: Final = msgspec.json.Decoder(RedrivePolicy, strict=False)
_allow_decoder: Final = msgspec.json.Decoder(AllowPolicy)


def text_of(queue: Queue, region: str) -> str | None:
    """The policy of a queue as JSON; None if it has none."""
    target = queue.redrive_target
    if target is None:
        return queue.remembered.attributes.get(attributes.REDRIVE) or None
    topic, receives = target
    return msgspec.json.encode(RedrivePolicy(names.arn_of(region, topic), receives)).decode()


def is_own(source: str, text: str) -> bool:
    """Whether a policy makes a queue its own dead-letter queue. Amazon allows it. A message that has been
    received too often goes where it is, so it just stays, and comes for ever."""
    return bool(text) and names.name_in_arn(read(text).target_arn) == source


async def configs_for(service: Service, access: Access, source: str, text: str) -> dict[str, str | None]:
    """The configs that a policy is; an empty text takes it away. Raises SqsError if it can't be. Dead letters
    are written by nodes, so whoever sends them to a queue has to be allowed to write there."""
    if not text:
        return {DELIVERY_LIMIT_CONFIG: FOREVER, DEAD_LETTER_TOPIC_CONFIG: None}
    policy = read(text)
    name = names.name_in_arn(policy.target_arn) or ""
    try:
        target = await service.queue_seen(access, name)
    except SqsError:
        raise _wrong(text, "Dead letter target does not exist.") from None
    access.check_topic(target.topic, WRITE)
    if name == source:
        return {DELIVERY_LIMIT_CONFIG: FOREVER, DEAD_LETTER_TOPIC_CONFIG: None}
    if target.fifo != names.is_fifo(source):
        raise _wrong(text, "Dead-letter queue must be same type of queue as the source.")
    if not _allows(target, source):
        raise _wrong(text, "The dead-letter queue's RedriveAllowPolicy does not permit it.")
    return {DELIVERY_LIMIT_CONFIG: str(policy.receives), DEAD_LETTER_TOPIC_CONFIG: target.topic}


def read(text: str) -> RedrivePolicy:
    try:
        policy = _policy_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise _wrong(text, "It needs deadLetterTargetArn and maxReceiveCount.") from None
    if not 1 <= policy.receives <= RECEIVES_MAX:
        raise _wrong(
            text, f"Invalid value for maxReceiveCount: {policy.receives}; it is 1 to {RECEIVES_MAX}."
        )
    return policy


def check_allow(text: str) -> None:
    """Raises SqsError if it is no RedriveAllowPolicy."""
    if not text:
        return
    try:
        policy = _allow_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise attributes.wrong("RedriveAllowPolicy") from None
    by_queue = policy.permission == "byQueue"
    if by_queue != bool(policy.source_arns) or len(policy.source_arns) > SOURCES_MAX:
        raise attributes.wrong("RedriveAllowPolicy", f"byQueue needs 1 to {SOURCES_MAX} sourceQueueArns.")


def _allows(target: Queue, source: str) -> bool:
    text = target.attribute("RedriveAllowPolicy")
    if not text:
        return True
    policy = _allow_decoder.decode(text)
    if policy.permission == "byQueue":
        return source in map(names.name_in_arn, policy.source_arns)
    return policy.permission == "allowAll"


def _wrong(text: str, reason: str) -> SqsError:
    return SqsError(
        "InvalidParameterValueException",
        f"Value {text[:500]} for parameter RedrivePolicy is invalid. Reason: {reason}",
    )
