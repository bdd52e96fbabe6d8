"""Queues come and go, and what is said of them: CreateQueue to PurgeQueue.

A queue that CreateQueue makes is a topic and a subscription of the same name, which begins with the topic's
first message. If the topic exists the queue is put on it, and DeleteQueue leaves it alone.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.client import offsets, subscriptions, topics
from postroad.client.metadata import TopicPartition
from postroad.errors import (
    GroupIdNotFound,
    NonEmptyGroup,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import ALTER_CONFIGS, DELETE, DESCRIBE, READ, WRITE
from postroad.gateway.sqs import answers, attributes, names, queue_attributes, redrive_policy
from postroad.gateway.sqs.errors import SqsError, invalid, no_such_queue, unsupported
from postroad.gateway.sqs.outgoing import TENANT
from postroad.gateway.sqs.queue import SQS_CONFIG, Queue, Remembered, name_exists, write
from postroad.gateway.sqs.requests import (
    CreateQueue,
    DeleteQueue,
    GetQueueUrl,
    ListDeadLetterSourceQueues,
    ListQueues,
    PurgeQueue,
)
from postroad.gateway.sqs.service import Caller, Service
from postroad.gateway.sqs.tags import check_tags
from postroad.wire.subscription_names import START_CONFIG

PURGE_MS: Final = 60_000  # one purge of a queue in so long
RESULTS_MAX: Final = 1000

FAIR_CONFIG: Final = "postroad.fair.by"
NODE_DEFAULT: Final = -1

TOPIC_CONFIG: Final = {
    "max.message.bytes": str(2 << 20),  # a message of 1 MiB, and Postroad's own headers
    attributes.RETENTION_CONFIG: "345600000",  # SQS: four days
}

log = logging.getLogger(__name__)


async def create_queue(service: Service, caller: Caller, asked: CreateQueue) -> answers.QueueUrl:
    name = asked.queue_name
    wanted = attributes.spelled(asked.attributes or {})
    names.check(name)
    if (wanted.get(attributes.FIFO) == "true") != names.is_fifo(name):
        raise invalid("QueueName", name, "The name of a FIFO queue, and of no other, ends with .fifo.")
    tags = check_tags(asked.tags or {})
    plan = queue_attributes.checked_plan(wanted, names.is_fifo(name))
    queue_attributes.check_policy(caller.access, plan)
    existing = await _find_or_create(service, caller.access, name, plan, tags)
    if existing is not None:
        await _check_same(service, existing, wanted)
    return answers.QueueUrl(names.url_of(caller.base_url, name))


def check_sender(access: Access, url: str) -> None:
    """By the queue's name alone: its topic has the same, as a rule. Raises TopicAuthorizationFailed."""
    name = names.name_in_url(url)
    if not access.may_group(name, DESCRIBE):
        access.check_topic(name, WRITE)


async def to_send(service: Service, access: Access, url: str) -> tuple[Queue, str]:
    """The queue and its topic, which the caller may write to; made on the way if `http.auto_create` is on.
    Raises SqsError, PostroadError."""
    if access.is_guarded:
        check_sender(access, url)
    queue = await _found_or_made(service, access, url)
    topic = queue.topic
    access.check_topic(topic, WRITE)
    return queue, topic


async def _found_or_made(service: Service, access: Access, url: str) -> Queue:
    try:
        return await service.queue(url)
    except SqsError:
        if not service.gateway.http.auto_create:
            raise
    name = names.name_in_url(url)
    try:
        names.check(name)
    except SqsError:
        raise no_such_queue() from None
    access.check_topic(name, WRITE)
    await _find_or_create(service, access, name, attributes.Plan(), {})
    return await service.queue_named(name)


async def _find_or_create(
    service: Service, access: Access, name: str, plan: attributes.Plan, tags: Mapping[str, str]
) -> Queue | None:
    """The one that was there already. One at a time, so that its topic is made by one of several callers.
    What was known of it is not asked: another gateway may have deleted it.

    Who may know of the queue, and may not make one, is told the one that is there."""
    if not service.may_see(access, name):
        access.check_group(name, ALTER_CONFIGS)
    async with service.changes:
        service.gateway.directory.forget(name)
        try:
            return await service.queue_named(name)
        except SqsError:
            access.check_group(name, ALTER_CONFIGS)
            await _create(service, access, name, plan, tags)
            return None


async def _create(
    service: Service, access: Access, name: str, plan: attributes.Plan, tags: Mapping[str, str]
) -> None:
    group = dict(plan.group)
    group |= await redrive_policy.configs_for(service, access, name, plan.redrive or "")
    made = await _create_topic(service, access, name, plan)
    now_s = service.gateway.now_ms() // 1000
    remembered = Remembered(dict(plan.remembered), dict(tags), now_s, now_s, made_topic=made)
    config = {
        START_CONFIG: "earliest",
        SQS_CONFIG: write(remembered),
        **_kind_config(name),
        **{key: value for key, value in group.items() if value is not None},
    }
    await service.gateway.directory.create(name, [name], config)


async def _create_topic(service: Service, access: Access, name: str, plan: attributes.Plan) -> bool:
    """False if it was there before; what was asked for it holds then, too. Who makes a queue on a topic that
    is there has to be allowed to read it: the queue keeps its messages, and may copy them."""
    client = service.gateway.client
    by_group = plan.remembered.get(attributes.SCOPE) == "messageGroup"
    needs_one = names.is_fifo(name) and not by_group
    partitions = 1 if needs_one else NODE_DEFAULT
    try:
        await _check_may_create(service, access, name)
        await topics.create(client, name, partitions=partitions, config={**TOPIC_CONFIG, **plan.topic})
    except TopicAlreadyExists:
        access.check_topic(name, READ)
        if needs_one:
            await queue_attributes.check_one_partition(service, name)
        if plan.topic:
            await queue_attributes.check_retention(service, access, name, plan)
            await topics.alter_config(client, name, plan.topic)
        return False
    return True


async def _check_may_create(service: Service, access: Access, name: str) -> None:
    """Raises TopicAlreadyExists where nothing has to be created, TopicAuthorizationFailed."""
    if access.may_create_topic(name):
        return
    access.check_topic(name, READ)
    if await service.gateway.client.topic_now(name) is not None:
        raise TopicAlreadyExists
    access.check_create_topic(name)


def _kind_config(name: str) -> dict[str, str]:
    if names.is_fifo(name):
        return {
            attributes.ORDER_CONFIG: "key",
            attributes.DEDUPLICATE_CONFIG: str(attributes.DEDUPLICATE_MS),
        }
    return {FAIR_CONFIG: TENANT}


async def _check_same(service: Service, queue: Queue, wanted: Mapping[str, str]) -> None:
    """Raises SqsError if the queue has other attributes than were asked for."""
    current = await queue_attributes.all_of(service, queue, names.REGION)
    for name, value in wanted.items():
        if not _is_same(name, current.get(name, ""), value):
            raise name_exists(f"a different value for attribute {name}")


def _is_same(name: str, current: str, value: str) -> bool:
    if name == attributes.REDRIVE and current and value:
        ours, theirs = redrive_policy.read(current), redrive_policy.read(value)
        same_target = names.name_in_arn(ours.target_arn) == names.name_in_arn(theirs.target_arn)
        return same_target and ours.receives == theirs.receives
    if value.startswith("{") and current.startswith("{"):
        return bool(msgspec.json.decode(current) == msgspec.json.decode(value))
    return current == value


async def delete_queue(service: Service, caller: Caller, asked: DeleteQueue) -> answers.Nothing:
    async with service.changing(asked.queue_url) as queue:
        if queue.remembered.made_topic:
            caller.access.check_topic(queue.name, DELETE)
        await _delete(service, queue)
    return answers.Nothing()


async def _delete(service: Service, queue: Queue) -> None:
    gateway = service.gateway
    await gateway.redrives.end(queue.name)
    try:
        await gateway.directory.delete(queue.name)
    except GroupIdNotFound:
        raise no_such_queue() from None
    except NonEmptyGroup:
        raise unsupported(f"Kafka consumers are reading {queue.name}: stop them first.") from None
    if queue.remembered.made_topic and not await _readers(service, queue.name):
        try:
            await topics.delete(gateway.client, [queue.name])
        except UnknownTopicOrPartition:
            log.info("the topic of queue %s was gone before", queue.name)


async def _readers(service: Service, topic: str) -> bool:
    """Whether a subscription reads the topic: then it stays."""
    directory = service.gateway.directory
    for name in await directory.names():
        try:
            if topic in (await directory.subscription(name)).topics:
                return True
        except GroupIdNotFound:
            continue
    return False


async def get_queue_url(service: Service, caller: Caller, asked: GetQueueUrl) -> answers.QueueUrl:
    queue = await service.queue_seen(caller.access, asked.queue_name)
    return answers.QueueUrl(names.url_of(caller.base_url, queue.name))


async def list_queues(service: Service, caller: Caller, asked: ListQueues) -> answers.QueueUrls:
    prefix = asked.queue_name_prefix or ""
    found = [
        name
        for name in await service.gateway.directory.names()
        if name.startswith(prefix) and service.may_see(caller.access, name)
    ]
    page, token = paged(found, asked.max_results, asked.next_token)
    return answers.QueueUrls([names.url_of(caller.base_url, name) for name in page] or None, token)


async def list_dead_letter_source_queues(
    service: Service, caller: Caller, asked: ListDeadLetterSourceQueues
) -> answers.SourceQueueUrls:
    queue = await service.queue(asked.queue_url)
    found = [name for name in await sources_of(service, queue) if service.may_see(caller.access, name)]
    page, token = paged(found, asked.max_results, asked.next_token)
    return answers.SourceQueueUrls([names.url_of(caller.base_url, name) for name in page], token)


async def sources_of(service: Service, queue: Queue) -> list[str]:
    """The queues whose dead letters go to this one."""
    found: list[str] = []
    for name in await service.gateway.directory.names():
        try:
            target = (await service.queue_named(name)).redrive_target
        except SqsError:
            continue
        if target is not None and target[0] in queue.info.topics:
            found.append(name)
    return found


def paged(found: list[str], max_results: int | None, token: str | None) -> tuple[list[str], str | None]:
    """The next page of sorted names, and what to ask for the one behind it with. Without a size there
    is one page, of a thousand at most."""
    if max_results is not None and not 1 <= max_results <= RESULTS_MAX:
        raise invalid("MaxResults", max_results, f"Must be between 1 and {RESULTS_MAX}.")
    if token is not None:
        try:
            last = base64.urlsafe_b64decode(token.encode()).decode()
        except (ValueError, binascii.Error):
            raise invalid("NextToken", token[:100], "It is none that was given.") from None
        found = [name for name in found if name > last]
    page = found[: max_results or RESULTS_MAX]
    if max_results is None or len(found) <= len(page):
        return page, None
    return page, base64.urlsafe_b64encode(page[-1].encode()).decode()


async def purge_queue(service: Service, _: Caller, asked: PurgeQueue) -> answers.Nothing:
    client = service.gateway.client
    async with service.changing(asked.queue_url) as queue:
        now_ms = service.gateway.now_ms()
        if now_ms - queue.remembered.purged_ms < PURGE_MS:
            text = f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
            raise SqsError("PurgeQueueInProgress", text, 403)
        topic = await client.retry(lambda: client.topic(queue.topic))
        everywhere = [TopicPartition(topic.name, partition.number) for partition in topic.partitions]
        await subscriptions.move(client, queue.name, await offsets.latest(client, everywhere))
        await service.remember(queue, msgspec.structs.replace(queue.remembered, purged_ms=now_ms))
    return answers.Nothing()
