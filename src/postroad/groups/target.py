"""What the members of a KIP-848 group shall own: subscriptions resolved against the topics, then the
assignor."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import blake2b

from postroad.groups.assignors import ASSIGNORS, Subscriber
from postroad.groups.consumer import Draft, preferred_assignor
from postroad.groups.records import MemberValue
from postroad.groups.regex import matcher
from postroad.groups.requests import TopicInfo, Topics


def retarget(draft: Draft, topics: Topics) -> None:
    """Compute the target for the group's epoch; every member has one afterwards."""
    members = draft.members()
    names = _Names(topics)
    counts = {info.topic_id: info.partitions for info in _all_topics(draft, topics).values()}
    subscribers = [
        Subscriber(member_id, value.instance_id, names.topic_ids(value), draft.target(member_id))
        for member_id, value in members.items()
    ]
    assign = ASSIGNORS[preferred_assignor(members.values())]
    for member_id, target in assign(subscribers, counts).items():
        draft.put_target(member_id, target)
    draft.target_epoch = draft.epoch
    draft.topics_digest = subscribed_digest(draft, topics)


def subscribed_digest(draft: Draft, topics: Topics) -> str:
    """Changes when a subscribed topic appears, is deleted, is made anew or gets more partitions."""
    digest = blake2b(digest_size=12)
    for name, (topic_id, partitions) in sorted(_all_topics(draft, topics).items()):
        digest.update(b"%s\0%s%d\n" % (name.encode(), topic_id, partitions))
    return digest.hexdigest()


def _all_topics(draft: Draft, topics: Topics) -> Mapping[str, TopicInfo]:
    names = _Names(topics)
    found: dict[str, TopicInfo] = {}
    for subscription in {_subscription(value) for value in draft.members().values()}:
        found.update((name, topics.by_name[name]) for name in names.resolve(*subscription))
    return found


def _subscription(value: MemberValue) -> tuple[tuple[str, ...], str | None]:
    return value.subscribed_names, value.subscribed_regex


class _Names:
    """Resolves each distinct subscription once: most members of a group have the same."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._resolved: dict[tuple[tuple[str, ...], str | None], frozenset[str]] = {}
        self._ids: dict[frozenset[str], frozenset[bytes]] = {}

    def resolve(self, names: tuple[str, ...], regex: str | None) -> frozenset[str]:
        found = self._resolved.get((names, regex))
        if found is None:
            found = self._resolved[names, regex] = frozenset(self._search(names, regex))
        return found

    def topic_ids(self, value: MemberValue) -> frozenset[bytes]:
        names = self.resolve(*_subscription(value))
        found = self._ids.get(names)
        if found is None:
            found = self._ids[names] = frozenset(self._topics.by_name[name].topic_id for name in names)
        return found

    def _search(self, names: tuple[str, ...], regex: str | None) -> set[str]:
        existing = self._topics.by_name
        found = {name for name in names if name in existing}
        if regex:
            found.update(filter(partial(_visible_match, regex), existing))
        return found


def _visible_match(regex: str, name: str) -> bool:
    """Internal topics are subscribed to by name only."""
    return not name.startswith("__") and matcher(regex).matches(name)
