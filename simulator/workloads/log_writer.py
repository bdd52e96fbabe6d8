"""Writes messages one by one, each a batch of its own, and notes what it is told of each."""

from __future__ import annotations

from typing import Final

from postroad.client import topics
from postroad.client.client import Client
from postroad.client.producer import Producer
from postroad.errors import TopicAlreadyExists
from simulator.clock import EPOCH_MS
from simulator.workloads.log_history import LogHistory, Position, Told
from simulator.workloads.workload import NEVER, Stage

ON_ITS_WAY_S: Final = 15.0  # an answer takes no longer, cuts of the network included


async def create_topic(client: Client, name: str, partitions: int, config: dict[str, str]) -> None:
    """The topic is there with this config, made by this call or by an earlier one."""
    try:
        await topics.create(client, name, partitions=partitions, config=config)
    except TopicAlreadyExists:
        return


def timestamp_ms(at: float) -> int:
    """What a clock that is right shows at this moment of the world."""
    return EPOCH_MS + int(at * 1000)


async def write(stage: Stage, history: LogHistory, producer: Producer, partition: int, size: int) -> None:
    """One message, with the time by a clock that is right. An error means that nobody knows of it."""
    now = stage.world.now
    value = b"%d.%s" % (len(history.sent), b"x" * size)
    history.sent[value] = now
    history.in_doubt[value] = None
    delivery = await producer.send(history.topic, value, partition=partition, timestamp=timestamp_ms(now))
    sent = await delivery
    if sent.offset < 0:
        return
    del history.in_doubt[value]
    position = Position(sent.partition, sent.offset)
    before = history.acknowledged.get(position)
    if before is not None and before.at > lost_until(stage):
        stage.broken("L2", f"{history.topic}: two messages were acknowledged at {tuple(position)}")
    history.acknowledged[position] = Told(value, now)


def saw(stage: Stage, history: LogHistory, position: Position, value: bytes) -> None:
    """L2, as soon as it can be seen: a reader found this value there."""
    told = history.seen.setdefault(position, Told(value, stage.world.now))
    if told.value != value:
        if told.at > unseen_until(stage):
            stage.broken("L2", f"{history.topic}: {tuple(position)} has two values")
        history.seen[position] = Told(value, stage.world.now)


def lost_until(stage: Stage) -> float:
    """The last power cut that may have taken what was acknowledged (acks=all) before it."""
    cuts = stage.losses()
    return cuts[-1] if cuts else NEVER


def unseen_until(stage: Stage) -> float:
    """The same for what was read; an answer may have been on its way when the power failed."""
    cuts = stage.losses()
    return cuts[-1] + ON_ITS_WAY_S if cuts else NEVER
