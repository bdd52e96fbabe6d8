"""A queue: a subscription with the eyes of SQS.

VisibilityTimeout, RedrivePolicy and the order of FIFO queues are configs of the subscription, which hold for
Kafka's share consumers too. What means something to SQS only is one JSON text in its config `postroad.sqs`.
A subscription that others have made has none, and is a queue with defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from postroad.gateway.directory import SubscriptionInfo
from postroad.gateway.sqs import names
from postroad.gateway.sqs.errors import SqsError, unsupported
from postroad.wire.subscription_names import DEAD_LETTER_TOPIC_CONFIG, DELIVERY_LIMIT_CONFIG

SQS_CONFIG: Final = "postroad.sqs"

MESSAGE_BYTES_MAX: Final = 1 << 20

DEFAULTS: Final = {
    "DelaySeconds": "0",
    "MaximumMessageSize": str(MESSAGE_BYTES_MAX),
    "ReceiveMessageWaitTimeSeconds": "0",
}
FIFO_DEFAULTS: Final = {
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}


class Remembered(Struct, omit_defaults=True):
    """What stands in `postroad.sqs`."""

    attributes: dict[str, str] = {}
    tags: dict[str, str] = {}
    created_s: int = 0
    modified_s: int = 0
    purged_ms: int = 0
    made_topic: bool = False  # by CreateQueue: then DeleteQueue takes it away


_decoder: Final = msgspec.json.Decoder(Remembered)


class Queue:
    """As it was when the directory last heard of it."""

    def __init__(self, info: SubscriptionInfo) -> None:
        self.info = info
        self.name = info.name
        self.fifo = names.is_fifo(info.name)
        self.remembered = _read(info.overrides.get(SQS_CONFIG, ""))
        self.delay_ms = self._number("DelaySeconds") * 1000
        self.wait_ms = self._number("ReceiveMessageWaitTimeSeconds") * 1000
        self.message_bytes_max = self._number("MaximumMessageSize")
        self.deduplicates_by_content = self.attribute("ContentBasedDeduplication") == "true"
        self.deduplicates_by_group = self.attribute("DeduplicationScope") == "messageGroup"

    @property
    def topic(self) -> str:
        """Where messages that are sent to it go. Raises SqsError where that can't be told."""
        topics = self.info.topics
        if self.name in topics:
            return self.name
        if len(topics) == 1:
            return topics[0]
        raise unsupported(f"{self.name} reads {len(topics)} topics: send to a queue of one of them.")

    @property
    def redrive_target(self) -> tuple[str, int] | None:
        """The topic of dead letters that was set, and after how many receives they go there."""
        topic = self.info.overrides.get(DEAD_LETTER_TOPIC_CONFIG, "")
        receives = int(self.info.config[DELIVERY_LIMIT_CONFIG])
        return (topic, receives) if topic and receives else None

    def attribute(self, name: str) -> str:
        """What has no config of its own; empty if it isn't set."""
        default = DEFAULTS.get(name) or FIFO_DEFAULTS.get(name, "")
        return self.remembered.attributes.get(name, default)

    def _number(self, name: str) -> int:
        """An operator may have written anything into the config: what is no number is the default."""
        value = self.attribute(name)
        return int(value) if value.isdecimal() else int(DEFAULTS[name])


def write(remembered: Remembered) -> str:
    return msgspec.json.encode(remembered).decode()


def _read(text: str) -> Remembered:
    try:
        return _decoder.decode(text) if text else Remembered()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Remembered()


def name_exists(why: str) -> SqsError:
    return SqsError("QueueNameExists", f"A queue already exists with the same name and {why}")
