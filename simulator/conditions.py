"""What differs from seed to seed but is no fault: the settings of the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from postroad.cluster.topic_config import FlushMode
from simulator import certificates

FLUSH_MODES: Final[tuple[FlushMode, ...]] = ("sync", "sync", "sync", "interval", "os")
REPLICAS: Final = 3
TLS_SHARE: Final = 0.1  # of all seeds: encryption costs processor time, and differs in the streams only
CLUSTER: Final = {
    "cluster.store": "unix:///shared",  # whatever it says: the nodes' runtimes have one store
    "cluster.lease_ms": "2000",  # short, as the lag: both end in a scenario
    "cluster.replica_lag_ms": "2000",
    "groups.offsets_partitions": "3",
}
GROUP_SESSION_MS: Final = 6_000  # the shortest that a member may ask for: sessions end within a scenario
GROUP_HEARTBEAT_MS: Final = 2_000


@dataclass(frozen=True)
class Conditions:
    flush: FlushMode
    short_ways: bool
    segment_bytes: int  # of topics that don't say otherwise: small, so that logs roll
    retention_check_ms: int
    compaction_check_ms: int
    offsets_partitions: int
    share_state_snapshot_bytes: int  # small, so that states are often written as a whole
    share_state_prune_records: int
    tls: bool = False  # clients and nodes talk with TLS
    read_ahead_bytes: int = 0  # small: followers read ahead of each sync

    @classmethod
    def draw(cls, random: Random) -> Conditions:
        return cls(
            flush=random.choice(FLUSH_MODES),
            short_ways=random.random() < 0.7,
            segment_bytes=random.choice((4_096, 16_384, 262_144, 1 << 30)),
            retention_check_ms=random.choice((500, 2_000, 10_000)),
            compaction_check_ms=random.choice((500, 2_000, 10_000)),
            offsets_partitions=random.choice((1, 1, 4)),
            share_state_snapshot_bytes=random.choice((100, 1_000, 4_000)),
            share_state_prune_records=random.choice((1, 20, 200)),
            tls=random.random() < TLS_SHARE,
            read_ahead_bytes=random.choice((0, 400, 1 << 20)),
        )

    def bootstrap(self, addresses: str) -> str:
        """How clients connect to these."""
        return certificates.bootstrap(addresses) if self.tls else addresses

    def flags(self, nodes: int = 1) -> dict[str, str]:
        """As `postroad serve` would be told them, by each of so many nodes."""
        return {
            "topics.replicas": str(min(nodes, REPLICAS)),
            "durability.flush": self.flush,
            "durability.flush_interval_ms": "200",
            "kafka.short_ways": str(self.short_ways).lower(),
            "topics.partitions": "3",
            "topics.segment_bytes": str(self.segment_bytes),
            "storage.retention_check_ms": str(self.retention_check_ms),
            "storage.compaction_check_ms": str(self.compaction_check_ms),
            "groups.offsets_partitions": str(self.offsets_partitions),
            "groups.share_state_snapshot_bytes": str(self.share_state_snapshot_bytes),
            "groups.share_state_prune_records": str(self.share_state_prune_records),
            "groups.consumer_session_ms": str(GROUP_SESSION_MS),
            "groups.consumer_heartbeat_ms": str(GROUP_HEARTBEAT_MS),
            **(CLUSTER if nodes > 1 else {}),
            "cluster.read_ahead_bytes": str(self.read_ahead_bytes),
            **(certificates.settings() if self.tls else {}),
            "http.enabled": "false",
        }

    @property
    def survives_power_cuts(self) -> bool:
        """Whatever was acknowledged is safe from them; else what was acknowledged lately may be gone."""
        return self.flush == "sync"
