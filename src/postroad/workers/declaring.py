"""Topics and the subscription of a worker, made or altered so that they are as the code says.

What the code does not say is left as it is, so operators may set it.
"""

from __future__ import annotations

import contextlib
import logging

from postroad.client import subscriptions, topics
from postroad.client.client import Client
from postroad.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from postroad.wire import subscription_names as names
from postroad.workers.worker import Worker

log = logging.getLogger("postroad.worker")


async def declare(client: Client, worker: Worker) -> None:
    """PostroadError if it can't be had."""
    for topic in worker.topics:
        await declare_topic(client, topic)
    name = worker.subscription
    known = {entry.name: entry for entry in await subscriptions.config(client, name)}
    given = known.get(names.TOPICS_CONFIG)
    exists = given is not None and bool(given.value)
    wanted = dict(worker.configs)
    if exists and given is not None:
        held = [topic for topic in (given.value or "").split(",") if topic]
        wanted[names.TOPICS_CONFIG] = ",".join(dict.fromkeys([*held, *worker.topics]))
        del wanted[names.START_CONFIG]  # it has begun
    changes = {
        config: value
        for config, value in wanted.items()
        if config not in known or known[config].value != value
    }
    if not changes:
        return
    try:
        await subscriptions.alter_config(client, name, changes)
    except (GroupAuthorizationFailed, ClusterAuthorizationFailed) as error:
        if not exists:
            raise
        log.warning("%s can't be altered to %s: %s", name, changes, error)


async def declare_topic(client: Client, topic: str) -> None:
    """The topic exists afterwards."""
    try:
        await client.topic(topic)
    except UnknownTopicOrPartition:
        with contextlib.suppress(TopicAlreadyExists):  # another process was quicker
            await topics.create(client, topic)
        await client.topic(topic, create=True)
