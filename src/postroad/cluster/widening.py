"""A queue that gets more partitions because the node that serves it is busy (`postroad.partitions.auto`).

More partitions help only where another node can lead them: a node serves all that it leads in one thread. So
a topic grows by one partition for each node that leads none of it, up to the number that its config allows,
and only for the sake of subscriptions that promise no order and look for no duplicates, both of which hold
within a partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from postroad.cluster.group_config import GroupSettings
from postroad.cluster.image import Image, Topic
from postroad.cluster.membership import placeable
from postroad.cluster.placement import replacement
from postroad.cluster.topic_config import partitions_auto

LOOKS: Final = 3  # in a row: a node that was busy for a moment is not


class Growth(NamedTuple):
    """A topic should have so many partitions; the replicas of the new ones, the leader first."""

    topic: str
    partitions: int
    assignments: list[list[int]]


class Busyness:
    """Whether a process has been busy for some looks in a row."""

    def __init__(self, least_percent: int) -> None:
        self._least_percent = least_percent
        self._looks = 0

    def look(self, passed_ms: int, used_ms: int) -> bool:
        """It has used so much processor time since the last look; True begins anew."""
        is_busy = used_ms * 100 >= passed_ms * self._least_percent
        self._looks = self._looks + 1 if is_busy else 0
        if self._looks < LOOKS:
            return False
        self._looks = 0
        return True


def may_spread(settings: GroupSettings) -> bool:
    """Whether a subscription is served as it was promised when its topic gets more partitions."""
    return settings.order == "none" and not settings.deduplicate_ms


def wider(image: Image, node: int, messages: Mapping[bytes, int], spread: Collection[bytes]) -> Growth | None:
    """How the topic grows that keeps the node busy, if it does.

    `messages` that came lately to what the node leads, by topic id; the topic must have had most of them, or
    the node would be as busy without it. `spread`: ids of topics that may be spread over more partitions.
    """
    topic_id = max(messages, key=lambda each: messages[each], default=b"")
    topic = image.topics_by_id.get(topic_id)
    if topic is None or topic.internal or topic_id not in spread:
        return None
    count = messages[topic_id]
    if not count or count * 2 < sum(messages.values()):
        return None
    if node not in {state.leader for state in topic.partitions}:
        return None
    return _growth(image, topic)


def _growth(image: Image, topic: Topic) -> Growth | None:
    leaders = {state.leader for state in topic.partitions}
    able = placeable(image)
    free = [node for node in able if node not in leaders]
    old, factor = len(topic.partitions), len(topic.partitions[0].target)  # also while it moves
    wanted = min(partitions_auto(topic.config), old + len(free))
    if wanted <= old or factor > len(able):
        return None
    held = {node: sum(node in state.replicas for state in topic.partitions) for node in able}
    racks = {node: image.nodes[node].rack for node in able}
    assignments = []
    for leader in free[: wanted - old]:
        replicas = [leader]
        while len(replicas) < factor:
            chosen = replacement(replicas, replicas, held, racks)
            assert chosen is not None
            replicas.append(chosen)
        for replica in replicas:
            held[replica] += 1
        assignments.append(replicas)
    return Growth(topic.name, wanted, assignments)
