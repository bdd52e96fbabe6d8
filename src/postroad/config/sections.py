"""Every setting of a node, by section, declared once: name, default, kind, meaning.

The class of a section is its name in TOML, the fields are the settings. Defaults carry their reason where
they differ from Kafka's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from postroad.cluster.topic_config import FlushMode
from postroad.config.access_keys import access_keys
from postroad.config.declaration import Section, group_default, setting, topic_default
from postroad.config.listeners import CERTIFICATE, is_loopback
from postroad.config.listeners import NONE as NOBODY_ASKED
from postroad.config.values import (
    UNLIMITED,
    base_url,
    choice,
    duration,
    host_names,
    number,
    path,
    secret,
    size,
    store_url,
    switch,
    text,
)

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
MIB: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Node(Section):
    """Which node of the cluster this is."""

    id: int = setting(
        1,
        number(0),
        "The node's number, unique in its cluster; kept in the data directory, it never changes.",
        kafka="node.id",
    )
    replace: bool = setting(
        False,
        switch(),
        "The node's data directory is lost and this one takes its place: other nodes' replicas are copied.",
    )
    rack: str = setting(
        "",
        text(),
        "Where the node stands: replicas are spread over racks, and consumers read from a replica in theirs.",
        kafka="broker.rack",
    )


@dataclass(frozen=True, kw_only=True)
class Data(Section):
    """Where messages and the coordination store are kept."""

    dir: Path = setting(
        Path("postroad-data"),
        path(),
        "The data directory, made (0700) if it is missing; relative to where the node is started.",
        kafka="log.dirs",
    )


LEASE_ALONE_MS: Final = 10_000  # nobody else could take over


@dataclass(frozen=True, kw_only=True)
class Cluster(Section):
    """How the nodes of a cluster know of each other, through the coordination store."""

    store: str = setting(
        "",
        store_url(),
        "The coordination store that all nodes share, such as etcd://10.0.0.1:2379,10.0.0.2:2379/postroad; "
        "empty: a file in the data directory, for a single node.",
    )
    # Not below two seconds: etcd would make it longer, and a pause of the machine would look like its end.
    lease_ms: int = setting(
        2_000,
        duration(2_000, 10 * MINUTE_MS),
        "A node that has not renewed its entry in the coordination store for this long counts as gone. It "
        "renews it four times within that. Alone, with a store of its own, it takes at least 10 s.",
        kafka="broker.session.timeout.ms",
    )
    replica_lag_ms: int = setting(
        10_000,
        duration(500, 10 * MINUTE_MS),
        "A follower that has not caught up with its leader for this long is out of sync.",
        kafka="replica.lag.time.max.ms",
    )
    catch_up_bytes_per_s: int = setting(
        0,
        size(0, 1 << 40),
        "How many bytes a second a node copies of all logs in which it is not in sync: replicas that are "
        "moved to it, and what it has missed while it was away. 0: no limit.",
        kafka="follower.replication.throttled.rate",
    )
    # A leader that sends so much of a log at once mostly has more; else another fetch would bring nothing.
    read_ahead_bytes: int = setting(
        256 * 1024,
        size(0, 1 << 40),
        "A follower that syncs a log and is sent this much of it at once asks for what follows before the "
        "sync has ended.",
    )
    # Long enough for a machine to be repaired or restarted: healing copies all that it held.
    heal_after_ms: int = setting(
        30 * MINUTE_MS,
        duration(0, 30 * DAY_MS),
        "When a node has been gone for this long, its replicas are copied to other nodes; 0: never.",
    )
    busy_percent: int = setting(
        80,
        number(0, 10_000),
        "A node whose process uses this much of a processor core is busy: queues that it leads may get "
        "partitions on other nodes then (the topic config postroad.partitions.auto).",
    )
    busy_ms: int = setting(
        30_000,
        duration(300, DAY_MS),
        "For how long a node must have been busy for that; then as long again before more are added.",
    )

    @property
    def lease_length_ms(self) -> int:
        """How long an entry lives that is not renewed."""
        return self.lease_ms if self.store else max(self.lease_ms, LEASE_ALONE_MS)


@dataclass(frozen=True, kw_only=True)
class Http(Section):
    """The gateway: SQS, REST, WebSocket and web hooks over HTTP, in a process of its own."""

    enabled: bool = setting(True, switch(), "Start a gateway beside the node.")
    host: str = setting("127.0.0.1", text(), "The address to listen on.")
    port: int = setting(8080, number(0, 65535), "The port to listen on; 0: any free one.")
    tls: bool = setting(
        False, switch(), "Speak TLS on that port (https), with the certificate of tls.certificate."
    )
    authentication: str = setting(
        NOBODY_ASKED,
        choice(NOBODY_ASKED, CERTIFICATE),
        "certificate: only clients that show one of a CA in tls.ca come in.",
    )
    url: str = setting(
        "", base_url(), "What queue URLs begin with; empty: as the client addressed the gateway."
    )
    hosts: str = setting(
        "",
        host_names(),
        "Further names by which clients may address the gateway, with commas between; *: any. "
        "Empty: on a loopback address without access keys none, else any.",
    )
    name: str = setting(
        "",
        text(),
        "What the gateway's transactional ids begin with: started again it aborts what it left open. No two "
        "gateways of a cluster may have the same. Empty: the machine's name and the port.",
    )
    auto_create: bool = setting(True, switch(), "Create a queue or a topic when its first message comes.")
    encrypted_at_rest: bool = setting(
        False,
        switch(),
        "The nodes' disks are encrypted, which only you know: SQS queues then say SqsManagedSseEnabled.",
    )
    access_keys: str = setting(
        "",
        access_keys(),
        "AWS-style keys, id:secret or id:secret:admin with commas between. Empty: nobody is asked for one. "
        "With security.enabled they are not needed: users come in, and a key is the user called so, or with "
        "admin may do everything.",
    )
    receipt_secret: str = setting(
        "",
        secret(),
        "Seals receipts; the same for all gateways. Empty: a random one that the cluster keeps.",
    )
    body_bytes_max: int = setting(4 * MIB, size(1024, 1 << 30), "The largest body of a request.")
    header_bytes_max: int = setting(
        32 * 1024, size(1024, MIB), "The longest head of a request: its first line and all headers."
    )
    receive_bytes_max: int = setting(
        64 * MIB,
        size(MIB),
        "Memory for requests that are being received or answered, in all; one that would need more gets 503.",
    )
    send_bytes_max: int = setting(
        64 * MIB,
        size(MIB),
        "Memory for answers that clients have not read, in all; beyond it the slowest reader is cut off. "
        "Messages on their way from the nodes count, too; receives bring fewer when little is left.",
    )
    request_ms: int = setting(
        30_000, duration(1), "A request that has begun must be complete within this time."
    )
    connections_max: int = setting(10_000, number(1), "Connections in all; more are closed at once.")
    connections_per_address_max: int = setting(
        5_000, number(1), "Connections from one address; more are closed at once."
    )
    idle_ms: int = setting(75_000, duration(1), "A connection without a request for this long is closed.")
    access_log: str = setting(
        "errors",
        choice("off", "errors", "all"),
        "Which requests get a line in the log: those that failed with 5xx, or all.",
    )
    access_log_format: str = setting("text", choice("text", "json"), "How that line looks.")
    webhooks_private: bool = setting(
        False,
        switch(),
        "Let web hooks go to loopback and private addresses too, and over http.",
    )
    insecure: bool = setting(
        False, switch(), "Allow an address that others can reach without access keys, though there is no TLS."
    )
    console: bool = setting(True, switch(), "Serve the console, a web page for people, at /console.")

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def demands_certificates(self) -> bool:
        return self.authentication == CERTIFICATE

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"


@dataclass(frozen=True, kw_only=True)
class Console(Section):
    """The gateway's web page for people (http.console)."""

    read_only: bool = setting(
        False, switch(), "Show everything and change nothing: the console has no buttons."
    )
    payloads: str = setting(
        "show",
        choice("show", "hide"),
        "hide: keys, values and headers of messages are not shown in the console.",
    )

    @property
    def shows_payloads(self) -> bool:
        return self.payloads == "show"


@dataclass(frozen=True, kw_only=True)
class Topics(Section):
    """How topics are created, and what holds for those that don't say otherwise."""

    auto_create: bool = setting(
        True, switch(), "Create a topic when a client first asks for it.", kafka="auto.create.topics.enable"
    )
    deletable: bool = setting(True, switch(), "Let clients delete topics.", kafka="delete.topic.enable")
    partitions: int = setting(
        1,
        number(1, 10_000),
        "Partitions of a topic whose creator does not say how many.",
        kafka="num.partitions",
    )
    replicas: int = setting(
        1,
        number(1, 100),
        "Replicas of a topic whose creator does not say how many.",
        kafka="default.replication.factor",
    )
    internal_replicas: int = setting(
        3,
        number(1, 32767),
        "How many replicas the nodes' own topics have, as soon as there are that many nodes.",
        kafka="offsets.topic.replication.factor",
    )
    retention_ms: int = topic_default("retention.ms", 7 * DAY_MS, duration(UNLIMITED))
    retention_bytes: int = topic_default("retention.bytes", UNLIMITED, size(UNLIMITED))
    segment_bytes: int = topic_default("segment.bytes", 1 << 30, size(14))
    segment_ms: int = topic_default("segment.ms", 7 * DAY_MS, duration(1))
    max_message_bytes: int = topic_default("max.message.bytes", MIB + 12, size(0))
    cleanup_policy: str = topic_default("cleanup.policy", "delete", text())
    compression_type: str = topic_default("compression.type", "producer", text())
    timestamp_type: str = topic_default("message.timestamp.type", "CreateTime", text())
    min_insync_replicas: int = topic_default("min.insync.replicas", 1, number(1))


@dataclass(frozen=True, kw_only=True)
class Durability(Section):
    """When an acknowledged message is safe from a power cut. Topics may say otherwise."""

    # Kafka leaves it to the operating system and trusts the other replicas; a single node has none.
    flush: FlushMode = topic_default("postroad.flush", "sync", choice("sync", "os", "interval"))
    flush_interval_ms: int = topic_default("postroad.flush.interval.ms", 1000, duration(1))


@dataclass(frozen=True, kw_only=True)
class Limits(Section):
    """Bounds that keep one client from taking what others need."""

    connections_max: int = setting(
        10_000, number(1), "Connections in all; more are closed at once.", kafka="max.connections"
    )
    connections_per_address_max: int = setting(
        5_000,
        number(1),
        "Connections from one address; more are closed at once.",
        kafka="max.connections.per.ip",
    )
    request_bytes_max: int = setting(
        100 * MIB,
        size(1024, 1 << 30),
        "The largest request; a larger one ends its connection.",
        kafka="socket.request.max.bytes",
    )
    frame_ms: int = setting(
        30_000,
        duration(1),
        "A request that has begun must be complete within this time, else its connection ends.",
    )
    idle_ms: int = setting(
        10 * MINUTE_MS,
        duration(1),
        "A connection without a request for this long is closed.",
        kafka="connections.max.idle.ms",
    )
    receive_bytes_max: int = setting(
        512 * MIB, size(MIB),
        "Memory for requests that are being received, in all; a connection that would need more is closed.",
    )  # fmt: skip
    write_buffer_bytes_max: int = setting(
        4 * MIB,
        size(1024),
        "While more than this waits for a client to read it, the client's further requests wait too.",
    )
    fetch_bytes_max: int = setting(
        55 * MIB,
        size(1024, 1 << 30),
        "The largest answer to a fetch, whatever the client asks for.",
        kafka="fetch.max.bytes",
    )
    fetch_sessions_max: int = setting(
        1000,
        number(0),
        "Fetch sessions that are kept; clients without one send their whole list each time.",
        kafka="max.incremental.fetch.session.cache.slots",
    )
    share_sessions_max: int = setting(
        10_000,
        number(1),
        "Members of subscriptions that may be connected at once.",
        kafka="group.share.max.share.sessions",
    )


@dataclass(frozen=True, kw_only=True)
class Groups(Section):
    """Consumer groups and their committed offsets."""

    session_min_ms: int = setting(
        6_000,
        duration(1),
        "The shortest session timeout that a member may ask for.",
        kafka="group.min.session.timeout.ms",
    )
    session_max_ms: int = setting(
        30 * MINUTE_MS,
        duration(1),
        "The longest session timeout that a member may ask for.",
        kafka="group.max.session.timeout.ms",
    )
    # Kafka waits 3 s, which every new consumer feels. A group that does not wait at all costs members that
    # start together more than that: those after the first get partitions when it sends its next heartbeat.
    rebalance_delay_alone_ms: int = setting(
        100,
        duration(0),
        "How long the first member of a new group waits for a second one before it gets its partitions.",
    )
    rebalance_delay_ms: int = setting(
        200,
        duration(0),
        "How long a new group of several members waits after the last one joined; 0: nobody waits.",
        kafka="group.initial.rebalance.delay.ms",
    )
    rebalance_delay_max_ms: int = setting(
        1_000,
        duration(0),
        "The longest that a new group waits in all; never less than rebalance_delay_ms.",
    )
    members_max: int = setting(10_000, number(1), "Members of one group.", kafka="group.max.size")
    consumer_heartbeat_ms: int = setting(
        5_000,
        duration(1),
        "How often members of the newer protocol (KIP-848) send a heartbeat.",
        kafka="group.consumer.heartbeat.interval.ms",
    )
    consumer_session_ms: int = setting(
        45_000,
        duration(1),
        "A member of the newer protocol (KIP-848) that was silent for this long is removed.",
        kafka="group.consumer.session.timeout.ms",
    )
    migration_policy: str = setting(
        "bidirectional",
        choice("bidirectional", "upgrade", "downgrade", "disabled"),
        "Whether a group with members may change from the classic to the newer protocol (upgrade) and back.",
        kafka="group.consumer.migration.policy",
    )
    offsets_retention_ms: int = setting(
        7 * DAY_MS,
        duration(1),
        "Offsets of a group without members are forgotten after this time.",
        kafka="offsets.retention.minutes",
        kafka_unit=MINUTE_MS,
    )
    # Kafka has 50, to spread groups over nodes. On one node a single log lets all commits share a sync.
    offsets_partitions: int = setting(
        1,
        number(1, 1000),
        "Partitions of __consumer_offsets, fixed when they are made. 1 is 12 where nodes share a store.",
        kafka="offsets.topic.num.partitions",
    )
    share_state_snapshot_bytes: int = setting(
        64 * 1024,
        size(1),
        "The state of a subscription's partition is written as a whole after this many bytes of changes; "
        "later where it is large.",
    )
    share_state_prune_records: int = setting(
        10_000,
        number(1),
        "How many records that nobody needs any more a ledger gathers before they are deleted.",
    )
    offset_metadata_bytes_max: int = setting(
        4096,
        size(0, MIB),
        "The longest text that may be committed with an offset.",
        kafka="offset.metadata.max.bytes",
    )


@dataclass(frozen=True, kw_only=True)
class Subscriptions(Section):
    """What holds for subscriptions (share groups) that don't say otherwise."""

    lock_ms: int = group_default("share.record.lock.duration.ms", 30_000, duration(0))
    delivery_limit: int = group_default("share.delivery.count.limit", 5, number(0))
    heartbeat_ms: int = group_default("share.heartbeat.interval.ms", 5_000, duration(1))
    session_ms: int = group_default("share.session.timeout.ms", 45_000, duration(1))
    partition_locks_max: int = group_default("share.partition.max.record.locks", 100_000, number(1))
    member_locks_max: int = group_default("postroad.member.max.record.locks", 100_000, number(1))
    locks_max: int = group_default("postroad.max.record.locks", 1_000_000, number(1))
    renew: bool = group_default("share.renew.acknowledge.enable", True, switch())
    start: str = group_default("share.auto.offset.reset", "latest", text())
    isolation: str = group_default("share.isolation.level", "read_uncommitted", text())
    backoff_initial_ms: int = group_default("postroad.backoff.initial.ms", 0, duration(0))
    backoff_max_ms: int = group_default("postroad.backoff.max.ms", 600_000, duration(0))
    dead_letters: bool = group_default("postroad.dead.letters", True, switch())


@dataclass(frozen=True, kw_only=True)
class Storage(Section):
    """Work on the logs that goes on in the background."""

    retention_check_ms: int = setting(
        5 * MINUTE_MS,
        duration(10),
        "How often old segments are looked for.",
        kafka="log.retention.check.interval.ms",
    )
    compaction: bool = setting(True, switch(), "Compact topics that ask for it.", kafka="log.cleaner.enable")
    compaction_check_ms: int = setting(
        15_000, duration(10), "How often logs to compact are looked for.", kafka="log.cleaner.backoff.ms"
    )
    producer_expiry_ms: int = setting(
        DAY_MS,
        duration(1),
        "An idempotent producer that was silent for this long is forgotten.",
        kafka="producer.id.expiration.ms",
    )


@dataclass(frozen=True, kw_only=True)
class Logging(Section):
    """What the node tells about itself."""

    level: str = setting(
        "info", choice("debug", "info", "warning", "error"), "The lowest level that is logged."
    )
    format: str = setting(
        "text", choice("text", "json"), "How the log is written: as text, or as one JSON object a line."
    )
