"""What the coordination store says, as the broker reads it: topics, partition states, groups, nodes.

The image changes only through `apply`, with events of the store: the same events give the same image,
live and after a restart, on every node. It is pure; between two applies it stands still.

- I1 Each topic has all of its partition states, no more and no fewer.
- I2 Names (also when '.' counts as '_') and ids are unique; no id is both a topic's and a deleted one's.
- I3 Each partition state holds P1 to P5 (see `keys`).
- I4 A leader epoch never falls while its topic lives, and names one leader.
- I5 A group is there only with overrides: one that was never configured, and one whose last override is
  gone, are the same.
- I6 `named_by` says of each topic name which groups' configs name it; `existed` tells of such topics only.
- I7 `access_keys` has the ids of all users' access keys, and no others.
- I8 `partition_count` is the number of all topics' partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from postroad.cluster import keys
from postroad.cluster.ids import id_bytes, id_text
from postroad.cluster.internal_topics import INTERNAL_TOPICS
from postroad.cluster.keys import PartitionState
from postroad.cluster.named_topics import named_topics
from postroad.cluster.store import ABSENT, Event, Snapshot
from postroad.cluster.topic_config import min_insync_replicas
from postroad.errors import CoordinationError, UnknownTopicOrPartition

K = TypeVar("K")
V = TypeVar("V")

NO_LEADER: Final = -1


class Topic(msgspec.Struct, frozen=True):
    name: str
    id: bytes
    partitions: tuple[PartitionState, ...]
    config: dict[str, str]  # only what differs from the node's defaults; not to be changed in place

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def id_text(self) -> str:
        """The id as it names directories and appears in tools."""
        return id_text(self.id)


class NodeEntry(msgspec.Struct, frozen=True):
    id: int
    host: str
    port: int
    incarnation: str
    directory: str = ""  # the id of its data directory; none if it runs an older version
    state: str = keys.SERVING
    rack: str = ""
    level: int = keys.LEVEL
    reads: bool = True
    is_tls: bool = False
    listeners: dict[str, tuple[str, int]] = {}

    def address(self, listener: str) -> tuple[str, int]:
        """Where clients of that listener find the node: at the first one if it has none of the name."""
        return self.listeners.get(listener) or (self.host, self.port)


class DeletedTopic(msgspec.Struct, frozen=True):
    """A topic that is gone, but whose directories are not yet, on these nodes."""

    id: bytes
    name: str
    nodes: tuple[int, ...]


class Alteration(NamedTuple):
    before: Topic
    after: Topic


class PartitionChange(msgspec.Struct, frozen=True):
    """A partition that was there before and has another state now; `topic` is the new one."""

    topic: Topic
    index: int
    before: PartitionState
    after: PartitionState


class NodeChange(NamedTuple):
    """A node whose entry was written or deleted. An entry that was only written anew has a new epoch."""

    id: int
    before: NodeEntry | None
    after: NodeEntry | None


class Changes(NamedTuple):
    """What an apply did. A topic deleted and created anew stands in both lists, under different ids."""

    created: list[Topic]
    deleted: list[Topic]
    altered: list[Alteration]  # config, number of partitions or a partition's state
    partitions: list[PartitionChange]  # of topics in `altered`, without partitions that are new
    nodes_changed: list[NodeChange]
    groups: list[str]  # ids of groups whose config changed or went away
    security: list[str]  # keys of users, ACLs and quotas that changed or went away


class Image:
    """Read the attributes, never change them."""

    def __init__(self) -> None:
        self.revision = 0  # the store's, as far as this image has followed it
        self.cluster_id: str | None = None  # None: an empty store
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.partition_count = 0
        self.groups: dict[str, dict[str, str]] = {}  # config overrides; not to be changed in place
        self.existed: dict[str, dict[str, keys.KnownTopic]] = {}  # by group: named topics as they were then
        self.named_by: dict[str, dict[str, None]] = {}  # by topic name, existing or not: ids of groups
        self.nodes: dict[int, NodeEntry] = {}
        self.controller: int | None = None  # the node that reconciles; None: nobody does
        self.directories: dict[int, str] = {}  # by node: the id of the directory that holds its replicas
        self.drains: dict[int, None] = {}  # ids of nodes that are to be emptied
        self.node_configs: dict[str, dict[str, str]] = {}  # by id or "all" (`node_config`)
        self.level = 0  # what all nodes understand (`keys.LEVEL`)
        self.deleted: dict[bytes, DeletedTopic] = {}
        self.next_producer_id = 0
        self.receipt_key: bytes | None = None  # None: no gateway has asked for it
        self.users: dict[str, keys.UserValue] = {}
        self.access_keys: dict[str, str] = {}  # whose an access key is, by its id
        self.acls: dict[keys.AclKey, tuple[keys.AclValue, ...]] = {}
        self.quotas: dict[keys.QuotaEntity, dict[str, float]] = {}
        # This node's own count of changes of users, ACLs and quotas: what was allowed at another one is asked
        # anew.
        self.security_revision = 0
        self._revisions: dict[str, int] = {}  # of every key that is part of the image
        self._by_key: dict[str, Topic] = {}
        self._values: dict[str, keys.TopicValue] = {}  # by key
        self._chunks: dict[str, dict[int, tuple[PartitionState, ...]]] = {}  # by topic id, then number

    def topic(self, name: str) -> Topic:
        """Raises UnknownTopicOrPartition if there is none."""
        if name not in self.topics:
            raise UnknownTopicOrPartition(f"There is no topic {name!r}.")
        return self.topics[name]

    def has_partition(self, name: str, index: int) -> bool:
        topic = self.topics.get(name)
        return topic is not None and 0 <= index < len(topic.partitions)

    def came_later(self, group_id: str, topic: Topic, index: int) -> bool:
        """Whether the partition came into being after the group's config had named its topic."""
        known = self.existed.get(group_id, {}).get(topic.name)
        return known is None or known.id != topic.id_text or index >= known.partitions

    def key_revision(self, key: str) -> int:
        """For a Compare: the revision that last wrote the key, ABSENT if it is not there."""
        return self._revisions.get(key, ABSENT)

    def node_epoch(self, node: int) -> int:
        """The node's broker epoch (KIP-903), ABSENT if it is not registered.

        It is the revision of the node's entry, so it rises with every registration and whenever the entry is
        written anew. A follower sends the newest one that it knows; who lags behind joins a moment later.
        """
        return self.key_revision(keys.node_key(node))

    def catch_up(self, snapshot: Snapshot) -> Changes:
        """Makes the image equal to a list of the whole store; at start, and after HistoryCompacted."""
        present = {entry.key for entry in snapshot.entries}
        gone = [Event(key, None, snapshot.revision) for key in self._revisions if key not in present]
        news = [Event(*entry) for entry in snapshot.entries if entry.revision != self.key_revision(entry.key)]
        return self.apply(gone + news, snapshot.revision)

    def apply(self, events: Sequence[Event], revision: int | None = None) -> Changes:
        """Takes the events of one watch answer, in order; the only thing that changes an image.

        `revision` is the store's after them: that of the last event unless told otherwise.
        Raises CoordinationError, and leaves the image unusable, if the store holds what it must not.
        """
        touched: dict[str, None] = {}  # keys of topics whose parts changed, in order
        changes = Changes([], [], [], [], [], [], [])
        for event in events:
            try:
                self._take(event, touched, changes)
            except ValueError as error:
                raise CoordinationError(f"The coordination store's key {event.key!r}: {error}.") from error
        for key in touched:
            self._rebuild(key, changes)
        self.revision = revision or max((event.revision for event in events), default=self.revision)
        return changes

    def check(self) -> None:
        """Asserts I1 to I3 and I5 to I8 (I4 is asserted with each change)."""
        assert {topic.id: topic for topic in self.topics.values()} == self.topics_by_id
        assert len(self._by_key) == len(self.topics) == len(self._values)
        assert self.partition_count == sum(len(topic.partitions) for topic in self.topics.values())
        assert not self.topics_by_id.keys() & self.deleted.keys()
        assert {id_text(topic_id) for topic_id in self.topics_by_id} == self._chunks.keys()
        assert all(self.groups.values())
        naming = {group: set(named_topics(config)) for group, config in self.groups.items()}
        assert {name: set(groups) for name, groups in self.named_by.items()} == {
            name: {group for group in naming if name in naming[group]}
            for name in set().union(*naming.values())
        }
        assert all(known and known.keys() <= naming[group] for group, known in self.existed.items())
        owners = {key_id: name for name, user in self.users.items() for key_id in user.keys}
        assert self.access_keys == owners
        for name, topic in self.topics.items():
            assert name == topic.name
            assert self._by_key[keys.topic_key(name)] is topic
            for state in topic.partitions:
                check_state(state)
                minimum = min_insync_replicas(topic.config, state.counted)
                assert not state.elr or len(state.isr) < minimum

    # --- one event -----------------------------------------------------------------------------

    def _take(self, event: Event, touched: dict[str, None], changes: Changes) -> None:
        kind, _, rest = event.key.partition("/")
        match kind:
            case "topics":
                touched[event.key] = None
                self._take_topic(event)
            case "partitions":
                touched |= dict.fromkeys(self._take_chunk(event, rest))
            case "nodes":
                changes.nodes_changed.append(self._take_node(event, int(rest)))
            case "groups":
                changes.groups.append(rest)
                self._take_group(event, rest)
            case "deleted":
                self._take_deleted(event, id_bytes(rest))
            case "users" | "acls" | "quotas":
                self._take_security(event, kind, rest)
                changes.security.append(event.key)
            case "directories" | "drains":
                self._take_node_note(event, kind, int(rest))
            case "node-configs":
                config = None if event.value is None else _decoded(event, keys.NodeConfigValue).config
                _put(self.node_configs, rest, config)
            case keys.CONTROLLER:
                self.controller = None if event.value is None else _decoded(event, keys.ControllerValue).node
            case keys.LEVEL_KEY:
                self.level = 0 if event.value is None else _decoded(event, keys.LevelValue).level
            case keys.CLUSTER | keys.PRODUCER_IDS | keys.RECEIPTS:
                self._take_fact(event)
            case _:
                return  # of a newer Postroad; not part of this image
        self._note(event)

    def _note(self, event: Event) -> None:
        if event.value is None:
            self._revisions.pop(event.key, None)
        else:
            self._revisions[event.key] = event.revision

    def _take_fact(self, event: Event) -> None:
        """What there is one of in a cluster."""
        gone = event.value is None
        match event.key:
            case keys.CLUSTER:
                self.cluster_id = None if gone else _decoded(event, keys.ClusterValue).id
            case keys.PRODUCER_IDS:
                self.next_producer_id = 0 if gone else _decoded(event, keys.ProducerIdsValue).next
            case keys.RECEIPTS:
                self.receipt_key = None if gone else _decoded(event, keys.ReceiptsValue).key

    def _take_topic(self, event: Event) -> None:
        if event.value is None:
            self._values.pop(event.key, None)
        else:
            self._values[event.key] = _decoded(event, keys.TopicValue)

    def _take_chunk(self, event: Event, rest: str) -> Iterator[str]:
        """Yields the keys of topics that have the chunk (one, or none while a topic is half told)."""
        topic_id, _, number = rest.partition("/")
        chunks = self._chunks.setdefault(topic_id, {})
        if event.value is None:
            chunks.pop(int(number), None)
        else:
            chunks[int(number)] = _decoded(event, keys.ChunkValue).states
        if not chunks:
            del self._chunks[topic_id]
        topic = self.topics_by_id.get(id_bytes(topic_id))
        if topic is not None:
            yield keys.topic_key(topic.name)

    def _take_node(self, event: Event, node: int) -> NodeChange:
        before, after = self.nodes.pop(node, None), None
        if event.value is not None:
            value = _decoded(event, keys.NodeValue)
            after = NodeEntry(node, *msgspec.structs.astuple(value))
            self.nodes[node] = after
        return NodeChange(node, before, after)

    def _take_node_note(self, event: Event, kind: str, node: int) -> None:
        """What is known of a node whether it runs or not."""
        notes: dict[int, Any] = self.directories if kind == "directories" else self.drains
        if event.value is None:
            notes.pop(node, None)
        elif kind == "directories":
            self.directories[node] = _decoded(event, keys.DirectoryValue).id
        else:
            _decoded(event, keys.DrainValue)
            self.drains[node] = None

    def _take_group(self, event: Event, group_id: str) -> None:
        for name in named_topics(self.groups.pop(group_id, {})):
            del self.named_by[name][group_id]
            if not self.named_by[name]:
                del self.named_by[name]
        self.existed.pop(group_id, None)
        if event.value is None:
            return
        value = _decoded(event, keys.GroupValue)
        self.groups[group_id] = value.config
        for name in named_topics(value.config):
            self.named_by.setdefault(name, {})[group_id] = None
        if value.existed:
            self.existed[group_id] = value.existed

    def _take_security(self, event: Event, kind: str, rest: str) -> None:
        """What belongs to a kind of resource that this version does not know stops the node: it would be
        safe for nobody to leave out a denial."""
        self.security_revision += 1
        value = event.value
        match kind:
            case "users":
                self._take_user(rest, None if value is None else _decoded(event, keys.UserValue))
            case "acls":
                acls = None if value is None else _decoded(event, keys.AclsValue).acls
                _put(self.acls, keys.read_acl_key(rest), acls)
            case "quotas":
                limits = None if value is None else _decoded(event, keys.QuotaValue).limits
                _put(self.quotas, keys.read_quota_key(rest), limits)

    def _take_user(self, name: str, user: keys.UserValue | None) -> None:
        before = self.users.get(name)
        for key_id in () if before is None else before.keys:
            self.access_keys.pop(key_id, None)
        _put(self.users, name, user)
        for key_id in () if user is None else user.keys:
            self.access_keys[key_id] = name

    def _take_deleted(self, event: Event, topic_id: bytes) -> None:
        if event.value is None:
            self.deleted.pop(topic_id, None)
        else:
            value = _decoded(event, keys.DeletedValue)
            self.deleted[topic_id] = DeletedTopic(topic_id, value.name, value.nodes)

    # --- topics, from their parts --------------------------------------------------------------

    def _rebuild(self, key: str, changes: Changes) -> None:
        before = self._by_key.get(key)
        after = self._assemble(self._values[key]) if key in self._values else None
        if before == after:
            return
        if before and after and before.id == after.id:
            changes.altered.append(Alteration(before, after))
            self.partition_count -= len(before.partitions)
            changes.partitions.extend(_changed_partitions(before, after))
        else:
            if before:
                changes.deleted.append(self._remove(key))
            if after:
                changes.created.append(after)
        if after:
            self.partition_count += len(after.partitions)
            self._by_key[key] = self.topics[after.name] = self.topics_by_id[after.id] = after

    def _remove(self, key: str) -> Topic:
        topic = self._by_key.pop(key)
        del self.topics[topic.name], self.topics_by_id[topic.id]
        self.partition_count -= len(topic.partitions)
        return topic

    def _assemble(self, value: keys.TopicValue) -> Topic:
        parts = self._chunks.get(value.id, {})
        states = tuple(state for number in sorted(parts) for state in parts[number])
        if len(states) != value.partitions:
            raise CoordinationError(
                f"The store has {len(states)} partitions of topic {value.name}, not {value.partitions}."
            )
        config = dict(INTERNAL_TOPICS.get(value.name, value.config))
        return Topic(value.name, id_bytes(value.id), states, config)


def _put(found: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        found.pop(key, None)
    else:
        found[key] = value


def _decoded(event: Event, kind: type[V]) -> V:
    assert event.value is not None
    return keys.decode(event.key, event.value, kind)


def check_state(state: PartitionState) -> None:
    """Asserts P1 to P5, as far as a state alone shows them."""
    replicas = set(state.replicas)
    assert state.replicas
    for part in (state.replicas, state.isr, state.elr, state.adding, state.removing, state.original):
        assert len(set(part)) == len(part)
        assert set(part) <= replicas
    assert state.leader == NO_LEADER or state.leader in state.isr
    assert not set(state.elr) & set(state.isr)
    assert not set(state.adding) & {*state.isr, *state.elr, *state.removing}
    assert set(state.removing) != replicas


def _changed_partitions(before: Topic, after: Topic) -> Iterator[PartitionChange]:
    """States of chunks that nobody wrote are the same objects, so a large topic costs little; asserts I4."""
    for index, (old, new) in enumerate(zip(before.partitions, after.partitions, strict=False)):
        if old is new or old == new:
            continue
        assert new.leader_epoch >= old.leader_epoch, f"{after.name}: a leader epoch fell"
        assert new.leader_epoch > old.leader_epoch or new.leader == old.leader, f"{after.name}: two leaders"
        yield PartitionChange(after, index, old, new)
