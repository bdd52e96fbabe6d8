"""TagQueue, UntagQueue and ListQueueTags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.gateway.sqs import answers
from postroad.gateway.sqs import text as texts
from postroad.gateway.sqs.errors import SqsError, invalid, missing
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.requests import ListQueueTags, TagQueue, UntagQueue
from postroad.gateway.sqs.service import Caller, Service

TAGS_MAX: Final = 50
KEY_CHARACTERS_MAX: Final = 128
VALUE_CHARACTERS_MAX: Final = 256


async def tag_queue(service: Service, _: Caller, asked: TagQueue) -> answers.Nothing:
    if not asked.tags:
        raise missing("Tags")
    async with service.changing(asked.queue_url) as queue:
        await _remember(service, queue, check_tags({**queue.remembered.tags, **asked.tags}))
    return answers.Nothing()


async def untag_queue(service: Service, _: Caller, asked: UntagQueue) -> answers.Nothing:
    if not asked.tag_keys:
        text = f"Tag keys must be between 1 and {KEY_CHARACTERS_MAX} characters in length."
        raise SqsError("InvalidParameterValueException", text)
    gone = frozenset(asked.tag_keys)
    async with service.changing(asked.queue_url) as queue:
        await _remember(service, queue, {k: v for k, v in queue.remembered.tags.items() if k not in gone})
    return answers.Nothing()


async def list_queue_tags(service: Service, _: Caller, asked: ListQueueTags) -> answers.Tags:
    queue = await service.queue(asked.queue_url)
    return answers.Tags(queue.remembered.tags or None)


def check_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Raises SqsError if they are too many, too long, or no text."""
    if len(tags) > TAGS_MAX:
        raise SqsError("OverLimit", f"A queue can have {TAGS_MAX} tags at most.")
    for key, value in tags.items():
        if not 0 < len(key) <= KEY_CHARACTERS_MAX or len(value) > VALUE_CHARACTERS_MAX:
            reason = f"A key has 1 to {KEY_CHARACTERS_MAX} characters, a value up to {VALUE_CHARACTERS_MAX}."
            raise invalid("Tags", key[:KEY_CHARACTERS_MAX], reason)
        if texts.encode(key) is None or texts.encode(value) is None:
            raise invalid("Tags", "…", "It contains characters that are not allowed.")
    return dict(tags)


async def _remember(service: Service, queue: Queue, tags: dict[str, str]) -> None:
    await service.remember(queue, msgspec.structs.replace(queue.remembered, tags=tags))
