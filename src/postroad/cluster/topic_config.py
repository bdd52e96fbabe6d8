"""Topic configs: which there are, what they mean, and what holds for one topic.

All of Kafka 4's names are known. Those that Postroad has no use for are accepted, so that tools and
scripts made for Kafka run unchanged, and shown as having no effect. Any other name is refused.

A value comes from the topic's own overrides, else from the node's settings, else from the table below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from postroad.cluster.config_definition import (
    INT_MAX,
    LONG_MAX,
    ConfigSource,
    ConfigType,
    Definition,
    Value,
    anything,
    at_least,
    between,
    one_of,
    some_of,
)
from postroad.cluster.config_table import ConfigTable, Overrides
from postroad.errors import InvalidConfig

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, DOUBLE, LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST

DAY_MS: Final = 86_400_000
NEVER: Final = str(LONG_MAX)
MIN_INSYNC: Final = "min.insync.replicas"
PARTITIONS_AUTO: Final = "postroad.partitions.auto"

FlushMode: TypeAlias = Literal["sync", "os", "interval"]
TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime"]

# fmt: off
_SUPPORTED: Final = (
    Definition("cleanup.policy", LIST, "delete",
               "delete: old segments go by time and size. compact: of each key the latest record stays. "
               "Empty: everything stays.",
               some_of("delete", "compact"), "log.cleanup.policy"),
    Definition("compression.type", STRING, "producer",
               "How batches are stored; producer: as they were sent.",
               one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"), "compression.type"),
    Definition("delete.retention.ms", LONG, str(DAY_MS),
               "How long a compacted topic keeps the tombstone of a deleted key.",
               at_least(0), "log.cleaner.delete.retention.ms"),
    Definition("flush.messages", LONG, NEVER,
               "Below the default: sync before each acknowledgement, so no more than asked for is at risk.",
               at_least(1), "log.flush.interval.messages"),
    Definition("flush.ms", LONG, NEVER,
               "Below the default: sync at least this often (0: before each acknowledgement). "
               "postroad.flush and flush.messages come before it.",
               at_least(0), "log.flush.interval.ms"),
    Definition("index.interval.bytes", INT, "4096",
               "Bytes of log between two entries of its index.",
               at_least(0), "log.index.interval.bytes"),
    Definition("max.compaction.lag.ms", LONG, NEVER,
               "A record is compacted at the latest after this time.",
               at_least(1), "log.cleaner.max.compaction.lag.ms"),
    Definition("max.message.bytes", INT, "1048588",
               "The largest batch that is accepted, as compressed by the producer.",
               at_least(0), "message.max.bytes"),
    Definition("message.timestamp.after.max.ms", LONG, "3600000",
               "How far ahead of the node's clock a producer's timestamp may be.",
               at_least(0), "log.message.timestamp.after.max.ms"),
    Definition("message.timestamp.before.max.ms", LONG, NEVER,
               "How far behind the node's clock a producer's timestamp may be.",
               at_least(0), "log.message.timestamp.before.max.ms"),
    Definition("message.timestamp.type", STRING, "CreateTime",
               "CreateTime: the producer's timestamps. LogAppendTime: the node's, when a batch is appended.",
               one_of("CreateTime", "LogAppendTime"), "log.message.timestamp.type"),
    Definition("min.cleanable.dirty.ratio", DOUBLE, "0.5",
               "Compact when this part of the log has not been compacted yet.",
               between(0, 1), "log.cleaner.min.cleanable.ratio"),
    Definition("min.compaction.lag.ms", LONG, "0",
               "A record stays uncompacted at least this long.",
               at_least(0), "log.cleaner.min.compaction.lag.ms"),
    Definition(MIN_INSYNC, INT, "1",
               "acks=all is answered only while this many replicas are in sync. A topic of several "
               "replicas that does not say gets one less than it has.",
               at_least(1), "min.insync.replicas"),
    Definition("postroad.flush", STRING, "sync",
               "sync: on disk before acks=all is answered. interval: every postroad.flush.interval.ms. "
               "os: when the operating system likes.",
               one_of("sync", "os", "interval"), "postroad.durability.flush"),
    Definition("postroad.flush.interval.ms", LONG, "1000",
               "The interval of postroad.flush=interval.",
               at_least(1), "postroad.durability.flush_interval_ms"),
    Definition(PARTITIONS_AUTO, INT, "0",
               "Up to how many partitions the topic gets by itself, on other nodes, while the node that "
               "leads it is busy and its subscriptions promise no order; 0: it stays as it is.",
               between(0, 10_000)),
    Definition("postroad.retention", STRING, "time",
               "time: messages go by retention.ms and retention.bytes. acknowledged: also as soon as every "
               "subscription of the topic is done with them.",
               one_of("time", "acknowledged")),
    Definition("postroad.retention.groups", BOOLEAN, "false",
               "With postroad.retention=acknowledged: a message also stays until the consumer groups that "
               "commit offsets of its partition have passed it.",
               anything),
    Definition("retention.bytes", LONG, "-1",
               "A partition's old segments are deleted when it grows beyond this; -1: no limit.",
               at_least(-1), "log.retention.bytes"),
    Definition("retention.ms", LONG, str(7 * DAY_MS),
               "Segments whose newest record is older than this are deleted; -1: no limit.",
               at_least(-1), "log.retention.ms"),
    Definition("segment.bytes", INT, str(1 << 30),
               "A new segment begins when the last one would grow beyond this.",
               at_least(14), "log.segment.bytes"),
    Definition("segment.ms", LONG, str(7 * DAY_MS),
               "A new segment begins when the last one's first record is older than this.",
               at_least(1), "log.roll.ms"),
)

_ACCEPTED: Final = tuple(
    Definition(name, kind, default, doc, rule, node_name, supported=False)
    for name, kind, default, doc, rule, node_name in (
        ("compression.gzip.level", INT, "-1", "The codec's default level is used.",
         between(-1, 9), "compression.gzip.level"),
        ("compression.lz4.level", INT, "9", "The codec's default level is used.",
         between(1, 17), "compression.lz4.level"),
        ("compression.zstd.level", INT, "3", "The codec's default level is used.",
         between(-131072, 22), "compression.zstd.level"),
        ("file.delete.delay.ms", LONG, "60000",
         "A removed segment's file goes at once; reads that are under way keep it.",
         at_least(0), "log.segment.delete.delay.ms"),
        ("follower.replication.throttled.replicas", LIST, "", "Replication is not throttled.", anything, ""),
        ("leader.replication.throttled.replicas", LIST, "", "Replication is not throttled.", anything, ""),
        ("local.retention.bytes", LONG, "-2", "There is no remote storage; see retention.bytes.",
         at_least(-2), "log.local.retention.bytes"),
        ("local.retention.ms", LONG, "-2", "There is no remote storage; see retention.ms.",
         at_least(-2), "log.local.retention.ms"),
        ("preallocate", BOOLEAN, "false", "Segments grow as they are written.", anything, "log.preallocate"),
        ("remote.log.copy.disable", BOOLEAN, "false", "There is no remote storage.", anything, ""),
        ("remote.log.delete.on.disable", BOOLEAN, "false", "There is no remote storage.", anything, ""),
        ("remote.storage.enable", BOOLEAN, "false", "There is no remote storage.", anything, ""),
        ("segment.index.bytes", INT, "10485760", "Indexes grow as they are written.",
         between(4, INT_MAX), "log.index.size.max.bytes"),
        ("segment.jitter.ms", LONG, "0", "Segments roll when they are due.",
         at_least(0), "log.roll.jitter.ms"),
        ("unclean.leader.election.enable", BOOLEAN, "false", "Only replicas in sync may lead.",
         anything, "unclean.leader.election.enable"),
    )
)
# fmt: on

TABLE: Final = ConfigTable("topic", ConfigSource.TOPIC, _SUPPORTED + _ACCEPTED)
DEFINITIONS: Final[Mapping[str, Definition]] = TABLE.definitions
definition_of: Final = TABLE.definition_of
describe: Final = TABLE.describe


@dataclass(frozen=True)
class TopicSettings:
    """What holds for one topic, typed; the names are those of the configs."""

    cleanup_delete: bool
    cleanup_compact: bool
    compression_type: str
    delete_retention_ms: int
    flush: FlushMode
    flush_interval_ms: int
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    retention_acknowledged: bool
    retention_groups: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_ms: int
    timestamp_after_max_ms: int
    timestamp_before_max_ms: int
    timestamp_type: TimestampType


def validate(config: Mapping[str, str | None]) -> dict[str, str]:
    """The config as it came, with a text for each name.

    Raises InvalidConfig if a name, a value or a combination of values is not valid, PolicyViolation if it
    is all too much.
    """
    texts = TABLE.check(config)
    if _integer("min.compaction.lag.ms", texts, {}) > _integer("max.compaction.lag.ms", texts, {}):
        raise InvalidConfig("min.compaction.lag.ms must not be above max.compaction.lag.ms.")
    return texts


def partitions_auto(overrides: Overrides) -> int:
    """Up to how many partitions the topic may get by itself; nodes must agree, so only the store counts."""
    return _integer(PARTITIONS_AUTO, overrides, {})


def default_min_insync(replicas: int) -> int:
    """One replica may be away, if there is more than one."""
    return max(1, replicas - 1)


def min_insync_replicas(overrides: Overrides, replicas: int) -> int:
    """How many replicas must be in sync for anything to be committed.

    Nodes must agree on it whatever their own settings are: one that commits with fewer than another thinks
    necessary would lose messages at the next election. So only what the store says counts. A topic that
    asks for more than it has commits with all of them, or nothing in it could ever be read; whether acks=all
    is refused for such a topic is another question (`TopicSettings.min_insync_replicas`).
    """
    explicit = overrides.get(MIN_INSYNC)
    wanted = default_min_insync(replicas) if explicit is None else int(explicit)
    return min(wanted, replicas)


def with_min_insync(config: Overrides, replicas: int, node_default: int = 1) -> dict[str, str]:
    """The overrides that are stored: a topic of several replicas always says how many must be in sync.

    `node_default` is that of the node that creates it; 1 stands for the rule of `default_min_insync`.
    """
    texts = dict(config)
    if replicas > 1 and MIN_INSYNC not in texts:
        chosen = min(node_default, replicas) if node_default > 1 else default_min_insync(replicas)
        texts[MIN_INSYNC] = str(chosen)
    return texts


def resolve(overrides: Overrides, defaults: Overrides, replicas: int = 1) -> TopicSettings:
    """What holds for a topic of so many replicas. `defaults` are the node's, by topic config name.

    Both were validated when they were set. An override that a later Postroad knows is passed over.
    """
    if replicas > 1:
        overrides = with_min_insync(overrides, replicas)

    def integer(name: str) -> int:
        return _integer(name, overrides, defaults)

    def text(name: str) -> str:
        return cast(str, _value(name, overrides, defaults))

    policy = cast("tuple[str, ...]", _value("cleanup.policy", overrides, defaults))
    flush, flush_interval_ms = _flush(overrides, defaults)
    return TopicSettings(
        cleanup_delete="delete" in policy,
        cleanup_compact="compact" in policy,
        compression_type=text("compression.type"),
        delete_retention_ms=integer("delete.retention.ms"),
        flush=flush,
        flush_interval_ms=flush_interval_ms,
        index_interval_bytes=integer("index.interval.bytes"),
        max_compaction_lag_ms=integer("max.compaction.lag.ms"),
        max_message_bytes=integer("max.message.bytes"),
        min_cleanable_dirty_ratio=cast(float, _value("min.cleanable.dirty.ratio", overrides, defaults)),
        min_compaction_lag_ms=integer("min.compaction.lag.ms"),
        min_insync_replicas=integer(MIN_INSYNC),
        retention_acknowledged=text("postroad.retention") == "acknowledged",
        retention_groups=cast(bool, _value("postroad.retention.groups", overrides, defaults)),
        retention_bytes=integer("retention.bytes"),
        retention_ms=integer("retention.ms"),
        segment_bytes=integer("segment.bytes"),
        segment_ms=integer("segment.ms"),
        timestamp_after_max_ms=integer("message.timestamp.after.max.ms"),
        timestamp_before_max_ms=integer("message.timestamp.before.max.ms"),
        timestamp_type=cast(TimestampType, text("message.timestamp.type")),
    )


def _value(name: str, overrides: Overrides, defaults: Overrides) -> Value:
    return TABLE.value(name, overrides, defaults)


def _integer(name: str, overrides: Overrides, defaults: Overrides) -> int:
    return cast(int, _value(name, overrides, defaults))


def _flush(overrides: Overrides, defaults: Overrides) -> tuple[FlushMode, int]:
    """Our own config first; then Kafka's two, the stricter one first; then the node's."""
    interval_ms = _integer("postroad.flush.interval.ms", overrides, defaults)
    flush_ms = _integer("flush.ms", overrides, {})
    if 0 < flush_ms < LONG_MAX:
        interval_ms = flush_ms
    if "postroad.flush" in overrides:
        mode = _value("postroad.flush", overrides, {})
    elif _integer("flush.messages", overrides, {}) < LONG_MAX or flush_ms == 0:
        mode = "sync"
    elif flush_ms < LONG_MAX:
        mode = "interval"
    else:
        mode = _value("postroad.flush", {}, defaults)
    return cast(FlushMode, mode), interval_ms
