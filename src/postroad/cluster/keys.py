"""The coordination store's keys and values (docs/formats/coordination-store.md).

    cluster                         which cluster this is
    nodes/<id>                      a running node; held by its lease. The key's revision is the broker epoch
    controller                      the node that reconciles the cluster; held by that node's lease
    directories/<id>                the data directory that holds the node's replicas
    drains/<id>                     a node that is to be emptied
    node-configs/<id, or all>       configs that were changed while nodes run, of one or of all
    level                           the lowest level that all nodes understand (`LEVEL`)
    topics/<name, '.' as '_'>       a topic: id, number of partitions, config overrides
    partitions/<topic id>/<chunk>   the states of up to 100 partitions
    groups/<group id>               a group's config overrides, and which of the topics that it names existed
                                    when it named them; there only while it has overrides
    deleted/<topic id>              a deleted topic whose directories some nodes still have to remove
    users/<name>                    what a user's passwords are checked with, and the user's access keys
    acls/<type>/<pattern>/<name>    the ACLs about one resource, or one prefix of names
    quotas/<entity>                 what a user or a client may take in a second
    receipts                        the key with which all gateways seal receipts
    producer-ids                    the first producer id that no node has been given

Values are JSON objects. Readers ignore fields that they don't know, so that a newer node may add some.

Names that differ only in '.' and '_' share a key: the store itself then refuses the second of two such
topics, even if two nodes try at the same moment.

Partition states lie a hundred to a key: one key each would take 10,000 operations to create a large
topic (etcd allows 128 in a commit), one for all would rewrite a megabyte when one leader changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from postroad.errors import CoordinationError

CLUSTER: Final = "cluster"
PRODUCER_IDS: Final = "producer-ids"
RECEIPTS: Final = "receipts"
CONTROLLER: Final = "controller"
LEVEL_KEY: Final = "level"
NODES: Final = "nodes/"
DRAINS: Final = "drains/"
NODE_CONFIGS: Final = "node-configs/"
DIRECTORIES: Final = "directories/"
TOPICS: Final = "topics/"
PARTITIONS: Final = "partitions/"
GROUPS: Final = "groups/"
DELETED: Final = "deleted/"
USERS: Final = "users/"
ACLS: Final = "acls/"
QUOTAS: Final = "quotas/"

PARTITIONS_PER_CHUNK: Final = 100

# What this version understands. 0: a single node. 1: replicas (the fields of PartitionState after `isr`).
# 2: partitions are moved between nodes (`original`). A node that does not know a field drops it when it
# rewrites the value. 3: each transaction has an epoch of its own, and what it reaches joins it by itself;
# nodes may speak TLS, and users and ACLs hold. 4: leaders end what subscriptions accepted in transactions.
# 5: several producers write in one transaction.
MOVES_LEVEL: Final = 2
TRANSACTIONS_LEVEL: Final = 3
SECURITY_LEVEL: Final = 3
PLEDGES_LEVEL: Final = 4
SHARED_LEVEL: Final = 5
LEVEL: Final = SHARED_LEVEL

# What a node's entry says of it. An entry of an older version says nothing, and its node serves.
STARTING: Final = "starting"  # it has yet to commit what became of its replicas: it may not be elected
SERVING: Final = "serving"
DRAINING: Final = "draining"  # it hands its leaderships over and stops: it leads only what nobody else can


class ClusterValue(msgspec.Struct, frozen=True):
    id: str


class NodeValue(msgspec.Struct, frozen=True, omit_defaults=True):
    host: str
    port: int
    incarnation: str  # random for each start: tells a process from its predecessor
    directory: str = ""  # the id of its data directory (`identity`); older versions wrote none
    state: str = SERVING
    rack: str = ""
    level: int = 0  # older versions wrote none
    reads: bool = False  # consumers may read there what it follows (KIP-392); older versions refuse them
    is_tls: bool = False  # at host and port
    listeners: dict[str, tuple[str, int]] = {}  # the others, by name: where their clients find the node


class ControllerValue(msgspec.Struct, frozen=True):
    node: int


class DirectoryValue(msgspec.Struct, frozen=True):
    id: str


class DrainValue(msgspec.Struct, frozen=True):
    """A drain has no fields so far: its key says all."""


class NodeConfigValue(msgspec.Struct, frozen=True):
    config: dict[str, str]


class LevelValue(msgspec.Struct, frozen=True):
    level: int


class TopicValue(msgspec.Struct, frozen=True):
    name: str
    id: str
    partitions: int
    config: dict[str, str]


class PartitionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who holds a partition.

    P1 isr ⊆ replicas, both without repetition, replicas not empty.
    P2 the leader is in the isr, or -1 if there is none; an epoch has one leader (L13).
    P3 elr ⊆ replicas without repetition, elr ∩ isr = ∅. It is empty if the isr has min.insync.replicas.
    P4 adding and removing ⊆ replicas, without repetition and disjoint; adding ∩ (isr ∪ elr) = ∅. Some
       replica is not removing.
    P5 original ⊆ replicas without repetition; empty unless the partition is being moved (`reassignment`).

    Whatever has its default is left out of the store, where most partitions are whole.
    """

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]  # the first one is the preferred leader
    isr: tuple[int, ...]
    # Replicas that left the isr when it was too small for anything to be committed since: they have all that
    # is committed and may be elected (KIP-966). Those that left last come last.
    elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()  # replicas that were never in sync; each leaves this when it joins the isr
    removing: tuple[int, ...] = ()  # replicas that go once the others are in sync
    ledger: bool = False  # a ledger lies beside its messages: a subscription has begun there, once
    original: tuple[int, ...] = ()  # the replicas before it began to be moved: a cancelled move ends there

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that the partition has in the end: all but those that are being removed."""
        return tuple(node for node in self.replicas if node not in self.removing)

    @property
    def counted(self) -> int:
        """How many replicas the partition counts as having, for the least that must be in sync.

        A replica that is being added does not count before it has joined: a partition that had one replica
        and gets a second must not stand still meanwhile. Nor does one that is both old and new for a while
        have more than it had or will have.
        """
        return min(len(self.replicas) - len(self.adding), max(len(self.original), len(self.target)))


class ChunkValue(msgspec.Struct, frozen=True):
    states: tuple[PartitionState, ...]


class KnownTopic(msgspec.Struct, frozen=True, array_like=True):
    """A topic as it was when a group's config began to name it."""

    id: str
    partitions: int


class GroupValue(msgspec.Struct, frozen=True, omit_defaults=True):
    config: dict[str, str]
    # Of the topics in `postroad.topics` those that existed when they were named, by name. Any other topic or
    # partition came later.
    existed: dict[str, KnownTopic] = {}


class DeletedValue(msgspec.Struct, frozen=True):
    name: str
    nodes: tuple[int, ...]  # those that have yet to remove their directories


class ProducerIdsValue(msgspec.Struct, frozen=True):
    next: int


class ScramValue(msgspec.Struct, frozen=True):
    """A SCRAM verifier; bytes are in base64."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


class AccessKeyValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """An access key. Its secret is made of the master key, the id and the version."""

    version: int
    created_ms: int = 0
    enabled: bool = True


class UserValue(msgspec.Struct, frozen=True, omit_defaults=True):
    scram: dict[str, ScramValue]  # by mechanism
    keys: dict[str, AccessKeyValue] = {}  # access keys, by id


class AclValue(msgspec.Struct, frozen=True, array_like=True):
    """One ACL; operation and permission are Kafka's numbers."""

    principal: str
    host: str
    operation: int
    permission: int


class AclsValue(msgspec.Struct, frozen=True):
    acls: tuple[AclValue, ...]


class QuotaValue(msgspec.Struct, frozen=True):
    limits: dict[str, float]


class AclKey(NamedTuple):
    """What ACLs are about. `type` and `pattern` are Kafka's numbers."""

    type: int
    pattern: int
    name: str


class QuotaEntity(NamedTuple):
    """Whose quota it is. None: the entity does not say; "": whoever has none of his own."""

    user: str | None
    client: str | None


class ReceiptsValue(msgspec.Struct, frozen=True):
    key: bytes  # in base64


V = TypeVar("V")


def encode(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value)


def decode(key: str, value: bytes, kind: type[V]) -> V:
    """Raises CoordinationError, naming the key, if the value is not what belongs there."""
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.MsgspecError as error:
        raise CoordinationError(f"The coordination store's key {key!r} can't be read: {error}.") from error


def node_key(node: int) -> str:
    return f"{NODES}{node}"


def directory_key(node: int) -> str:
    return f"{DIRECTORIES}{node}"


def drain_key(node: int) -> str:
    return f"{DRAINS}{node}"


def node_config_key(who: str) -> str:
    return NODE_CONFIGS + who


def topic_key(name: str) -> str:
    return TOPICS + name.replace(".", "_")


def chunk_key(topic_id: str, chunk: int) -> str:
    return f"{PARTITIONS}{topic_id}/{chunk:04d}"


def group_key(group_id: str) -> str:
    return GROUPS + group_id


def deleted_key(topic_id: str) -> str:
    return DELETED + topic_id


RESOURCE_TYPES: Final = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id"}
PATTERNS: Final = {3: "literal", 4: "prefixed"}


def user_key(name: str) -> str:
    return USERS + name


def acl_key(about: AclKey) -> str:
    return f"{ACLS}{RESOURCE_TYPES[about.type]}/{PATTERNS[about.pattern]}/{about.name}"


def read_acl_key(rest: str) -> AclKey:
    """Raises ValueError if it is none."""
    kind, pattern, name = rest.split("/", 2)
    types = {text: number for number, text in RESOURCE_TYPES.items()}
    patterns = {text: number for number, text in PATTERNS.items()}
    if kind not in types or pattern not in patterns:
        raise ValueError("it names no kind of resource, or no pattern, that this version knows")
    return AclKey(types[kind], patterns[pattern], name)


def quota_key(entity: QuotaEntity) -> str:
    """In JSON, since names may have any characters."""
    return QUOTAS + msgspec.json.encode(entity).decode()


def read_quota_key(rest: str) -> QuotaEntity:
    """Raises ValueError if it is none."""
    return msgspec.json.decode(rest, type=QuotaEntity)


class Chunk(NamedTuple):
    number: int
    states: tuple[PartitionState, ...]


def chunks(states: tuple[PartitionState, ...]) -> Iterator[Chunk]:
    for first in range(0, len(states), PARTITIONS_PER_CHUNK):
        yield Chunk(first // PARTITIONS_PER_CHUNK, states[first : first + PARTITIONS_PER_CHUNK])
