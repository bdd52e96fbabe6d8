"""Group configs: which there are, what they mean, and what holds for one group.

A group with configs is a subscription (Kafka: a share group), or may become one: consumer groups have no
configs of their own. Where Kafka has a name for something it is used, with Kafka's default unless the
table says why not. Any other name is refused.

A value comes from the group's own overrides, else from the node's settings (section `subscriptions`), else
from the table below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from postroad.cluster.config_definition import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    Definition,
    Value,
    anything,
    between,
    one_of,
)
from postroad.cluster.config_table import ConfigTable, Overrides
from postroad.cluster.internal_topics import INTERNAL_TOPICS
from postroad.cluster.start_at import StartAt, read_start, start_rule
from postroad.cluster.topics import check_name
from postroad.errors import InvalidConfig, InvalidTopic

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST

LOCK_MS_MAX: Final = 43_200_000  # 12 h: whoever needs longer renews
DEDUPLICATE_MS_MAX: Final = 3_600_000  # ids of an hour may be some million
BACKOFF_MS_MAX: Final = 86_400_000  # a day; a message that fails for days belongs among the dead letters
# Shorter ones would cost the node more than the sooner notice of a dead member is worth.
HEARTBEAT_MS_MIN: Final = 100
HEARTBEAT_MS_MAX: Final = 300_000
SESSION_MS_MAX: Final = 3_600_000
# 100,000 messages in flight take some 30 MB: these keep one subscription from taking all of a node.
LOCKS_MAX: Final = 1_000_000
SUBSCRIPTION_LOCKS_MAX: Final = 10_000_000
HEADER_CHARACTERS_MAX: Final = 249

NO_DEFAULTS: Final[Overrides] = {}

_RIGHT_NAME: Final = "a topic name (1 to 249 letters, digits, '.', '_' and '-')"


class GroupSettings(NamedTuple):
    """What holds for one group, typed."""

    lock_ms: int
    delivery_limit: int  # 0: any number
    partition_locks_max: int
    member_locks_max: int
    locks_max: int  # of the whole subscription
    order: str  # none, key or partition
    fair_by: str  # a header's name; "": off
    backoff_initial_ms: int
    backoff_factor: float
    backoff_max_ms: int
    backoff_jitter: float
    start: StartAt
    committed_only: bool  # what a transaction wrote is delivered once it is committed
    heartbeat_ms: int
    session_ms: int
    renew_enabled: bool
    dead_letters: bool
    dead_letter_topic: str  # "": `<group id>.dead`
    topics: tuple[str, ...]  # held for the subscription whether or not it has members
    at_most_once: bool
    deduplicate_ms: int  # 0: off
    bookkeeping: bool  # a tool's record: in no list


def _topic_names(value: Value) -> str | None:
    assert isinstance(value, tuple)
    right = all(_is_topic_name(name) and name not in INTERNAL_TOPICS for name in value)
    if right and len(set(value)) == len(value):
        return None
    return f"topics with commas between, each once and none of the nodes' own; each {_RIGHT_NAME}"


def _dead_letter_topic(value: Value) -> str | None:
    assert isinstance(value, str)
    if not value or (_is_topic_name(value) and not value.startswith("__")):
        return None
    return f"empty, or {_RIGHT_NAME} that doesn't begin with '__'"


def _header_name(value: Value) -> str | None:
    assert isinstance(value, str)
    return None if len(value) <= HEADER_CHARACTERS_MAX else f"up to {HEADER_CHARACTERS_MAX} characters"


def _is_topic_name(name: str) -> bool:
    try:
        check_name(name)
    except InvalidTopic:
        return False
    return True


# fmt: off
TABLE: Final = ConfigTable("group", ConfigSource.GROUP, (
    Definition("errors.deadletterqueue.topic.name", STRING, "",
               "The topic for messages that are given up; empty: the group's id with '.dead' after it.",
               _dead_letter_topic),
    Definition("postroad.backoff.factor", DOUBLE, "2.0",
               "The factor by which the wait grows with each further failed delivery.",
               between(1, 100)),
    Definition("postroad.backoff.initial.ms", INT, "0",
               "How long a message waits after its first failed delivery (released, or its lock ran out).",
               between(0, BACKOFF_MS_MAX)),
    Definition("postroad.backoff.jitter", DOUBLE, "0.0",
               "Up to this part of a wait is left out, at random, so that what failed together is not "
               "tried again together.",
               between(0, 1)),
    Definition("postroad.backoff.max.ms", INT, "600000",
               "The longest wait after a failed delivery.",
               between(0, BACKOFF_MS_MAX)),
    Definition("postroad.bookkeeping", BOOLEAN, "false",
               "Whether the subscription is only a tool's record of what it has done, as that of redrives: "
               "lists and metrics leave it out.",
               anything),
    Definition("postroad.dead.letters", BOOLEAN, "true",
               "Whether a message that is given up is copied to the dead-letter topic, or only dropped.",
               anything),
    Definition("postroad.deduplicate.ms", INT, "0",
               "A message whose header postroad-dedup-id was seen on its partition within this time is not "
               "delivered. 0: none is looked for.",
               between(0, DEDUPLICATE_MS_MAX)),
    Definition("postroad.delivery", STRING, "at-least-once",
               "at-least-once: a message comes again until it is acknowledged. at-most-once: it counts as "
               "acknowledged as soon as it is handed out.",
               one_of("at-least-once", "at-most-once")),
    Definition("postroad.fair.by", STRING, "",
               "A header that names the tenant: tenants with fewer messages in flight are served first. "
               "Empty: no tenants.",
               _header_name),
    Definition("postroad.max.record.locks", INT, "1000000",
               "How many messages of the whole subscription may be in flight.",
               between(1, SUBSCRIPTION_LOCKS_MAX)),
    Definition("postroad.member.max.record.locks", INT, "100000",
               "How many messages one member may have in flight.",
               between(1, LOCKS_MAX)),
    Definition("postroad.order", STRING, "none",
               "none: whatever is available. key: messages of one key one after the other. "
               "partition: one message of a partition after the other.",
               one_of("none", "key", "partition")),
    Definition("postroad.redrives", STRING, "",
               "Redrives of the subscription's dead letters and move tasks of the queue, which gateways "
               "write down here, as JSON.",
               anything),
    Definition("postroad.redrives.cancel", STRING, "",
               "The id of a redrive that is to be cancelled.",
               anything),
    Definition("postroad.sqs", STRING, "",
               "What the gateway remembers of an SQS queue and has no config of its own, as JSON.",
               anything),
    Definition("postroad.topics", LIST, "",
               "The subscription holds the messages of these topics, whether or not it has members. "
               "Topics that its members name are added to these.",
               _topic_names),
    Definition("postroad.webhook", STRING, "",
               "Where the gateway sends the subscription's messages by POST, and how, as JSON.",
               anything),
    Definition("share.auto.offset.reset", STRING, "latest",
               "Where to begin on a partition that is new to the subscription: latest, earliest, "
               "by_duration:P1DT2H (so long before now) or at:1735689600000 (milliseconds since 1970).",
               start_rule),
    Definition("share.delivery.count.limit", INT, "5",
               "After this many deliveries (1000 at most) a message is given up; 0: never.",
               between(0, 1000), "group.share.delivery.count.limit"),
    Definition("share.heartbeat.interval.ms", INT, "5000",
               "How often members send a heartbeat.",
               between(HEARTBEAT_MS_MIN, HEARTBEAT_MS_MAX), "group.share.heartbeat.interval.ms"),
    Definition("share.isolation.level", STRING, "read_uncommitted",
               "read_committed: messages of transactions are delivered once these are committed.",
               one_of("read_uncommitted", "read_committed")),
    # Kafka's default is 2,000; a few members that prefetch use that up.
    Definition("share.partition.max.record.locks", INT, "100000",
               "How many messages of one partition may be in flight.",
               between(1, LOCKS_MAX), "group.share.partition.max.record.locks"),
    Definition("share.record.lock.duration.ms", INT, "30000",
               "How long a member has for a message before others may get it; 12 hours at most.",
               between(0, LOCK_MS_MAX), "group.share.record.lock.duration.ms"),
    Definition("share.renew.acknowledge.enable", BOOLEAN, "true",
               "Whether members may renew their locks.",
               anything),
    Definition("share.session.timeout.ms", INT, "45000",
               "A member that was silent for this long is taken for dead, and its messages are released.",
               between(HEARTBEAT_MS_MIN, SESSION_MS_MAX), "group.share.session.timeout.ms"),
))
# fmt: on


def validate(config: Mapping[str, str | None], defaults: Overrides = NO_DEFAULTS) -> dict[str, str]:
    """The config as it came, with a text for each name. `defaults` are the node's.

    Raises InvalidConfig if a name, a value or a combination of values is not valid, PolicyViolation if it
    is all too much.
    """
    texts = TABLE.check(config)
    check_combination(settings_of(texts, defaults))
    return texts


def check_combination(settings: GroupSettings) -> None:
    """Raises InvalidConfig if values that are right each don't go together."""
    if settings.session_ms <= settings.heartbeat_ms:
        raise InvalidConfig(
            f"share.session.timeout.ms ({settings.session_ms}) must be above share.heartbeat.interval.ms "
            f"({settings.heartbeat_ms})."
        )
    if settings.backoff_initial_ms > settings.backoff_max_ms:
        raise InvalidConfig("postroad.backoff.initial.ms must not be above postroad.backoff.max.ms.")


def settings_of(config: Overrides, defaults: Overrides = NO_DEFAULTS) -> GroupSettings:
    """What holds for a group with these overrides, which were validated when they were set, on a node with
    these defaults.

    An override that a later Postroad knows is passed over.
    """

    def value(name: str) -> Any:
        return TABLE.value(name, config, defaults)

    return GroupSettings(
        lock_ms=value("share.record.lock.duration.ms"),
        delivery_limit=value("share.delivery.count.limit"),
        partition_locks_max=value("share.partition.max.record.locks"),
        member_locks_max=value("postroad.member.max.record.locks"),
        locks_max=value("postroad.max.record.locks"),
        order=value("postroad.order"),
        fair_by=value("postroad.fair.by"),
        backoff_initial_ms=value("postroad.backoff.initial.ms"),
        backoff_factor=value("postroad.backoff.factor"),
        backoff_max_ms=value("postroad.backoff.max.ms"),
        backoff_jitter=value("postroad.backoff.jitter"),
        start=read_start(value("share.auto.offset.reset")),
        committed_only=value("share.isolation.level") == "read_committed",
        heartbeat_ms=value("share.heartbeat.interval.ms"),
        session_ms=value("share.session.timeout.ms"),
        renew_enabled=value("share.renew.acknowledge.enable"),
        dead_letters=value("postroad.dead.letters"),
        dead_letter_topic=value("errors.deadletterqueue.topic.name"),
        topics=value("postroad.topics"),
        at_most_once=value("postroad.delivery") == "at-most-once",
        deduplicate_ms=value("postroad.deduplicate.ms"),
        bookkeeping=value("postroad.bookkeeping"),
    )


def describe(
    config: Overrides, names: Iterable[str] | None = None, defaults: Overrides = NO_DEFAULTS
) -> list[ConfigEntry]:
    """For DescribeConfigs, as of topics; a group that isn't there is described by {}: the defaults."""
    return TABLE.describe(config, defaults, names)
