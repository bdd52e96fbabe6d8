"""Attributes of queues: which there are, what values they take, and what they change.

Some are configs of the subscription, one is a config of its topic, the rest is remembered (`queue.py`).
`plan` reads what a caller wants; nothing is changed before all of it was found right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad.gateway.sqs.errors import SqsError
from postroad.gateway.sqs.queue import DEFAULTS, FIFO_DEFAULTS, MESSAGE_BYTES_MAX, Queue
from postroad.wire.subscription_names import LOCK_CONFIG

RETENTION_CONFIG: Final = "retention.ms"
ORDER_CONFIG: Final = "postroad.order"
DEDUPLICATE_CONFIG: Final = "postroad.deduplicate.ms"
DEDUPLICATE_MS: Final = 300_000

COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
TIMES: Final = ("CreatedTimestamp", "LastModifiedTimestamp")
RETENTION: Final = "MessageRetentionPeriod"
VISIBILITY: Final = "VisibilityTimeout"
REDRIVE: Final = "RedrivePolicy"
FIFO: Final = "FifoQueue"
SCOPE: Final = "DeduplicationScope"
HIGH_THROUGHPUT: Final = (SCOPE, "FifoThroughputLimit")
ARN: Final = "QueueArn"
KMS_KEY: Final = "KmsMasterKeyId"
SSE: Final = "SqsManagedSseEnabled"

Check = Callable[[str], bool]


def _between(low: int, high: int) -> Check:
    return lambda value: value.isdecimal() and len(value) <= 10 and low <= int(value) <= high


def _one_of(*values: str) -> Check:
    return lambda value: value in values


def _json_object(value: str) -> bool:
    """Empty takes a policy away."""
    if not value:
        return True
    try:
        return isinstance(msgspec.json.decode(value), dict)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def _truth(value: str) -> bool:
    return value.lower() in ("true", "false")


SETTABLE: Final[Mapping[str, Check]] = {
    "ContentBasedDeduplication": _truth,
    SCOPE: _one_of("messageGroup", "queue"),
    "DelaySeconds": _between(0, 900),
    FIFO: _truth,
    "FifoThroughputLimit": _one_of("perQueue", "perMessageGroupId"),
    "KmsDataKeyReusePeriodSeconds": _between(60, 86_400),
    KMS_KEY: lambda value: len(value) <= 2048,
    "MaximumMessageSize": _between(1024, MESSAGE_BYTES_MAX),
    RETENTION: _between(60, 1_209_600),
    "Policy": _json_object,
    "ReceiveMessageWaitTimeSeconds": _between(0, 20),
    "RedriveAllowPolicy": _json_object,
    REDRIVE: _json_object,
    SSE: _truth,
    VISIBILITY: _between(0, 43_200),
}
NAMES: Final = frozenset(SETTABLE) | {ARN, *COUNTS, *TIMES}


@dataclass
class Plan:
    """What is to be changed. `redrive` is told as it came: whether its target exists is not known here."""

    group: dict[str, str | None] = field(default_factory=dict)
    topic: dict[str, str] = field(default_factory=dict)
    remembered: dict[str, str] = field(default_factory=dict)
    redrive: str | None = None


def spelled(attributes: Mapping[str, str]) -> dict[str, str]:
    """With truth values in lower case: SDKs write `True`, too."""
    return {
        name: value.lower() if SETTABLE.get(name) is _truth else value for name, value in attributes.items()
    }


def plan(attributes: Mapping[str, str], fifo: bool) -> Plan:
    """Raises SqsError for the first attribute that is not right."""
    wanted = Plan()
    for name, value in spelled(attributes).items():
        check(name, value, fifo)
        if name == VISIBILITY:
            wanted.group[LOCK_CONFIG] = str(int(value) * 1000)
        elif name == RETENTION:
            wanted.topic[RETENTION_CONFIG] = str(int(value) * 1000)
        elif name == REDRIVE:
            wanted.redrive = value
        elif name != FIFO:
            wanted.remembered[name] = value
    return wanted


def check(name: str, value: str, fifo: bool) -> None:
    right = SETTABLE.get(name)
    if not fifo and name in HIGH_THROUGHPUT:
        text = f"You can specify the {name} only when FifoQueue is set to true."
        raise SqsError("InvalidAttributeName", text)
    if right is None or (not fifo and (name == FIFO or name in FIFO_DEFAULTS)):
        raise unknown(name)
    if not right(value):
        raise wrong(name)


def unknown(name: str) -> SqsError:
    return SqsError("InvalidAttributeName", f"Unknown Attribute {name[:100]}.")


def wrong(name: str, why: str = "") -> SqsError:
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}. {why}".rstrip())


def known_of(queue: Queue, arn: str, encrypted: bool) -> dict[str, str]:
    """All attributes of a queue that can be told without asking anybody. `encrypted`: messages are so on the
    disk, which a queue with a key of its own puts down to that."""
    known = {
        ARN: arn,
        "CreatedTimestamp": str(queue.remembered.created_s),
        "LastModifiedTimestamp": str(queue.remembered.modified_s),
        VISIBILITY: str(queue.info.lock_ms // 1000),
        **DEFAULTS,
        SSE: "true" if encrypted and not queue.remembered.attributes.get(KMS_KEY) else "false",
        **(FIFO_DEFAULTS if queue.fifo else {}),
        **queue.remembered.attributes,
    }
    if queue.fifo:
        known[FIFO] = "true"
    if not known.get(KMS_KEY):
        known.pop("KmsDataKeyReusePeriodSeconds", None)
    return {name: value for name, value in known.items() if value}
