"""What an operator may set about groups; Kafka's names and defaults unless a line says why not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_DAY = 24 * 60 * _MINUTE


class MigrationPolicy(StrEnum):
    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """Times in milliseconds."""

    # Classic groups.
    session_timeout_min_ms: int = 6 * _SECOND
    session_timeout_max_ms: int = 30 * _MINUTE
    # Kafka waits 3 s before a new group's first generation; its own quick start sets 0. Here a lone member
    # waits a moment that nobody feels. Once a second one is seen, others are likely to follow: without the
    # longer wait they would be in only after the first member's next heartbeat, 3 s later in most clients.
    initial_rebalance_delay_alone_ms: int = 100
    initial_rebalance_delay_ms: int = 200  # since the last join
    initial_rebalance_delay_max_ms: int = 1 * _SECOND  # in all
    group_size_max: int = 10_000
    # A member whose first join is parked sends no heartbeats; it is given up after this time.
    new_member_join_timeout_ms: int = 5 * _MINUTE

    # KIP-848 groups.
    consumer_heartbeat_interval_ms: int = 5 * _SECOND
    consumer_session_timeout_ms: int = 45 * _SECOND
    consumer_group_size_max: int = 10_000
    # Which way a group with members may change its protocol.
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    # Offsets.
    offset_metadata_bytes_max: int = 4096
    offsets_retention_ms: int = 7 * _DAY
    offsets_sweep_interval_ms: int = 10 * _MINUTE

    # An expiry whose records could not be appended is tried again after this time.
    expiry_retry_ms: int = 1 * _SECOND


@dataclass(frozen=True)
class ShareGroupSettings:
    """The settings of one share group, times in milliseconds."""

    heartbeat_ms: int = 5 * _SECOND
    session_ms: int = 45 * _SECOND
    # Kafka stops at 200; a member costs no more here than one of a consumer group does.
    members_max: int = 10_000
