"""Names about subscriptions that nodes and clients must agree on: configs, and the dead-letter topic."""

from __future__ import annotations

from typing import Final

TOPICS_CONFIG: Final = "postroad.topics"
START_CONFIG: Final = "share.auto.offset.reset"
LOCK_CONFIG: Final = "share.record.lock.duration.ms"
DELIVERY_LIMIT_CONFIG: Final = "share.delivery.count.limit"
DEAD_LETTERS_CONFIG: Final = "postroad.dead.letters"
DEAD_LETTER_TOPIC_CONFIG: Final = "errors.deadletterqueue.topic.name"
BACKOFF_CONFIG: Final = "postroad.backoff.initial.ms"
BACKOFF_MAX_CONFIG: Final = "postroad.backoff.max.ms"
ORDER_CONFIG: Final = "postroad.order"
BOOKKEEPING_CONFIG: Final = "postroad.bookkeeping"

_DEAD_SUFFIX: Final = ".dead"
_TOPIC_CHARACTERS_MAX: Final = 249


def default_dead_letter_topic(group_id: str) -> str:
    """Named after the subscription, as far as its id can be part of a topic's name."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in group_id)
    return name[: _TOPIC_CHARACTERS_MAX - len(_DEAD_SUFFIX)] + _DEAD_SUFFIX
