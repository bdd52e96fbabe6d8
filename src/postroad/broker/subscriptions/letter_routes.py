"""Where dead letters go from topic to topic, so that no message goes round in circles.

A subscription with dead letters is a route from each of its topics to its dead-letter topic. Routes that lead
back to where they began would copy one rejected message for as long as somebody rejects it, so what would
close such a circle is refused: a change of a group's configs, and a member that names a topic. What an older
version has let through is found when the message dies (`check_burial`): it stays dying, and is not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from postroad.cluster.config_table import Overrides
from postroad.cluster.group_config import TABLE
from postroad.cluster.image import Image
from postroad.errors import InvalidConfig, InvalidRequest
from postroad.wire.subscription_names import (
    DEAD_LETTER_TOPIC_CONFIG,
    DEAD_LETTERS_CONFIG,
    TOPICS_CONFIG,
    default_dead_letter_topic,
)

if TYPE_CHECKING:
    from postroad.broker.node import Node

TopicsByGroup = Mapping[str, Iterable[str]]

_ROUTE_CONFIGS: Final = (TOPICS_CONFIG, DEAD_LETTER_TOPIC_CONFIG, DEAD_LETTERS_CONFIG)


class LetterRoutes:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._fine: set[tuple[str, str]] = set()  # groups and topics of theirs without a circle …
        self._fine_at = -1  # … at this revision of the image

    def check_config(self, image: Image, group_id: str, config: Overrides) -> None:
        """Raises InvalidConfig if these configs of the group close a circle."""
        before = image.groups.get(group_id, {})
        if all(before.get(name) == config.get(name) for name in _ROUTE_CONFIGS):
            return
        held = self._held_by_all()
        topics = {*_configured_topics(config), *held.get(group_id, ())}
        circle = _circle({**image.groups, group_id: config}, held, group_id, topics)
        if circle:
            raise InvalidConfig(
                f"{_told(group_id, circle)} Choose another dead-letter topic "
                f"({DEAD_LETTER_TOPIC_CONFIG}), or switch dead letters off ({DEAD_LETTERS_CONFIG}=false)."
            )

    def check_member(self, group_id: str, topics: Iterable[str]) -> None:
        """Raises InvalidRequest if a member that names these topics would close a circle."""
        new = {*topics} - {
            *self._held(group_id)
        }  # a circle of those that are held is found by `check_config`
        circle = _circle(self._node.image.groups, self._held_by_all(), group_id, new) if new else []
        if circle:
            raise InvalidRequest(f"{_told(group_id, circle)} Read it with another subscription.")

    def check_burial(self, group_id: str, topic: str) -> None:
        """Raises InvalidConfig if the letters of a message of this topic lead back to it."""
        image = self._node.image
        if self._fine_at != image.revision:
            self._fine.clear()
            self._fine_at = image.revision
        if (group_id, topic) in self._fine:
            return
        circle = _circle(image.groups, {}, group_id, {topic})
        if circle:
            raise InvalidConfig(f"{_told(group_id, circle)} Choose another with --dead-letters.")
        self._fine.add((group_id, topic))

    def _held_by_all(self) -> dict[str, list[str]]:
        return {group_id: self._held(group_id) for group_id in self._node.subscriptions.ids()}

    def _held(self, group_id: str) -> list[str]:
        """The topics of which the subscription has messages, and those that its members name."""
        subscriptions, topics = self._node.subscriptions, self._node.image.topics_by_id
        ids = {ledger.key.topic_id for ledger in subscriptions.ledgers(group_id)}
        names = [topics[topic_id].name for topic_id in ids if topic_id in topics]
        return names + subscriptions.members.topics_of(group_id)


def _circle(
    configs: Mapping[str, Overrides], held: TopicsByGroup, group_id: str, topics: set[str]
) -> list[str]:
    """The way from the group's dead-letter topic back to one of these topics; [] if there is none."""
    start = _dead_letter_topic(group_id, configs.get(group_id, {}))
    if start is None or not topics:
        return []
    if start in topics:
        return [start]
    routes = _routes(configs, held)
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop()
        for target in routes.get(way[-1], ()):
            if target in topics:
                return [*way, target]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return []


def _routes(configs: Mapping[str, Overrides], held: TopicsByGroup) -> dict[str, set[str]]:
    """For each topic the dead-letter topics of the subscriptions that hold it."""
    routes: dict[str, set[str]] = {}
    for group_id, topic in _holdings(configs, held):
        target = _dead_letter_topic(group_id, configs.get(group_id, {}))
        if target is not None:
            routes.setdefault(topic, set()).add(target)
    return routes


def _holdings(configs: Mapping[str, Overrides], held: TopicsByGroup) -> Iterator[tuple[str, str]]:
    for group_id, config in configs.items():
        for topic in _configured_topics(config):
            yield group_id, topic
    for group_id, topics in held.items():
        for topic in topics:
            yield group_id, topic


def _configured_topics(config: Overrides) -> tuple[str, ...]:
    topics = TABLE.value(TOPICS_CONFIG, config, {}) if TOPICS_CONFIG in config else ()
    assert isinstance(topics, tuple)
    return topics


def _dead_letter_topic(group_id: str, config: Overrides) -> str | None:
    if DEAD_LETTERS_CONFIG in config and not TABLE.value(DEAD_LETTERS_CONFIG, config, {}):
        return None
    return config.get(DEAD_LETTER_TOPIC_CONFIG, "").strip() or default_dead_letter_topic(group_id)


def _told(group_id: str, circle: list[str]) -> str:
    if len(circle) == 1:
        return f"{circle[0]} is the dead-letter topic of {group_id}: its letters would come back for ever."
    way = " → ".join(circle)
    return f"The dead letters of {group_id} would come back to it for ever, by way of {way}."
