"""GetQueueAttributes and SetQueueAttributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.client import topics
from postroad.errors import UnknownTopicOrPartition
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import ALTER_CONFIGS
from postroad.gateway.sqs import answers, attributes, counts, names, redrive_policy
from postroad.gateway.sqs.attributes import COUNTS, NAMES, REDRIVE, RETENTION, RETENTION_CONFIG, Plan
from postroad.gateway.sqs.errors import SqsError, unsupported
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.requests import GetQueueAttributes, SetQueueAttributes
from postroad.gateway.sqs.service import Caller, Service

ALL: Final = frozenset({"All", "ALL"})
POLICY: Final = "Policy"


async def get_queue_attributes(
    service: Service, caller: Caller, asked: GetQueueAttributes
) -> answers.QueueAttributes:
    queue = await service.queue(asked.queue_url)
    wanted = set(asked.attribute_names or ())
    for name in sorted(wanted - NAMES - ALL):
        raise attributes.unknown(name)
    if wanted & ALL:
        wanted = set(NAMES)
    found = await _find(service, queue, caller.region, wanted)
    return answers.QueueAttributes({name: found[name] for name in sorted(found)} or None)


async def set_queue_attributes(
    service: Service, caller: Caller, asked: SetQueueAttributes
) -> answers.Nothing:
    async with service.changing(asked.queue_url) as queue:
        plan = checked_plan(asked.attributes, queue.fifo)
        check_policy(caller.access, plan)
        if attributes.spelled(asked.attributes).get(attributes.FIFO, "true") != "true":
            raise attributes.wrong(attributes.FIFO, "Reason: Modifying queue type is not supported.")
        if plan.remembered.get(attributes.SCOPE) == "queue":
            await check_one_partition(service, queue.topic)
        config = dict(plan.group)
        if plan.redrive is not None:
            config |= await redrive_policy.configs_for(service, caller.access, queue.name, plan.redrive)
            is_own = redrive_policy.is_own(queue.name, plan.redrive)
            plan.remembered[REDRIVE] = plan.redrive if is_own else ""
        if plan.topic:
            await check_retention(service, caller.access, queue.topic, plan)
            await topics.alter_config(service.gateway.client, queue.topic, plan.topic)
        remembered = msgspec.structs.replace(
            queue.remembered,
            attributes={**queue.remembered.attributes, **plan.remembered},
            modified_s=service.gateway.now_ms() // 1000,
        )
        await service.remember(queue, remembered, config)
    return answers.Nothing()


def checked_plan(wanted: Mapping[str, str], fifo: bool) -> Plan:
    plan = attributes.plan(wanted, fifo)
    redrive_policy.check_allow(plan.remembered.get("RedriveAllowPolicy", ""))
    return plan


def check_policy(access: Access, plan: Plan) -> None:
    """Raises SqsError: with users a policy would be a rule that holds for nobody."""
    if access.is_guarded and plan.remembered.get(POLICY):
        raise unsupported("Policies decide nothing here: `postroad acl` says who may do what.")


async def check_retention(service: Service, access: Access, topic: str, plan: Plan) -> None:
    """Raises SqsError for a shorter retention without an admin's key: it deletes messages. Users need to be
    allowed to alter the topic."""
    access.check_topic(topic, ALTER_CONFIGS)
    wanted = plan.topic.get(RETENTION_CONFIG)
    if access.admin or access.is_guarded or wanted is None:
        return
    current_ms = await _retention_ms(service, topic)
    if current_ms is None or int(wanted) < current_ms:
        text = f"To shorten {RETENTION} needs an admin's key: it deletes messages."
        raise SqsError("AccessDeniedException", text, 403)


async def check_one_partition(service: Service, topic: str) -> None:
    """Raises SqsError if there are several: a deduplication id is compared within a partition, so that of a
    whole queue needs a single one."""
    found = await service.gateway.client.topic_now(topic)
    if found is not None and len(found.partitions) > 1:
        why = f"The topic has {len(found.partitions)} partitions: only messageGroup is possible."
        raise attributes.wrong(attributes.SCOPE, why)


async def all_of(service: Service, queue: Queue, region: str) -> dict[str, str]:
    """All that can be set, as it is now."""
    return await _find(service, queue, region, set(attributes.SETTABLE))


async def _find(service: Service, queue: Queue, region: str, wanted: set[str]) -> dict[str, str]:
    found = attributes.known_of(
        queue, names.arn_of(region, queue.name), service.gateway.http.encrypted_at_rest
    )
    if (policy := redrive_policy.text_of(queue, region)) is not None:
        found[REDRIVE] = policy
    if RETENTION in wanted and (retention_s := await _retention_s(service, queue)) is not None:
        found[RETENTION] = str(retention_s)
    if wanted.intersection(COUNTS):
        figures = await counts.count(service.gateway.client, queue.name)
        found |= dict(zip(COUNTS, map(str, figures), strict=True))
    return {name: value for name, value in found.items() if name in wanted}


async def _retention_s(service: Service, queue: Queue) -> int | None:
    """The retention of the queue's own topic, or of the first it reads; None if that is unlimited."""
    if not queue.info.topics:
        return None
    topic = queue.name if queue.name in queue.info.topics else queue.info.topics[0]
    try:
        retention_ms = await _retention_ms(service, topic)
    except UnknownTopicOrPartition:
        return None
    return None if retention_ms is None else retention_ms // 1000


async def _retention_ms(service: Service, topic: str) -> int | None:
    """None if it is unlimited. Raises UnknownTopicOrPartition."""
    entries = await topics.describe_config(service.gateway.client, topic)
    retention_ms = next(int(entry.value or -1) for entry in entries if entry.name == RETENTION_CONFIG)
    return retention_ms if retention_ms >= 0 else None
