"""One file for each Kafka API: its key, the versions it answers, and `handle`.

A file here is all there is to an API on this side of the wire; adding it to `ALL` registers and
advertises it. What clients seldom ask for is named there only, with its key, its versions and the first
flexible one, and is loaded when it is asked for. CONTRIBUTING.md walks through adding one.
"""

from __future__ import annotations

from typing import Final, cast

from postroad.broker.api import (
    api_versions,
    consumer_group_heartbeat,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    nodes,
    offset_commit,
    offset_fetch,
    produce,
    receipt_key,
    share_acknowledge,
    share_fetch,
    share_group_heartbeat,
    sync_group,
)
from postroad.broker.dispatch import Api
from postroad.broker.later import Later

NEVER: Final = 0x7FFF  # a version of which no message is flexible

ALL: Final = cast(
    "list[Api]",
    [
        produce,
        fetch,
        list_offsets,
        metadata,
        offset_commit,
        offset_fetch,
        find_coordinator,
        join_group,
        heartbeat,
        leave_group,
        sync_group,
        Later("describe_groups", 15, (0, 6), 5),
        Later("list_groups", 16, (0, 5), 3),
        api_versions,
        Later("create_topics", 19, (2, 7), 5),
        Later("delete_topics", 20, (1, 6), 4),
        Later("delete_records", 21, (0, 2), 2),
        init_producer_id,
        Later("sasl_handshake", 17, (0, 1), NEVER),
        Later("sasl_authenticate", 36, (0, 2), 2),
        Later("add_partitions_to_txn", 24, (0, 3), 3),
        Later("add_offsets_to_txn", 25, (0, 4), 3),
        Later("end_txn", 26, (0, 5), 3),
        Later("write_txn_markers", 27, (1, 2), 1),
        Later("txn_offset_commit", 28, (0, 5), 3),
        Later("offset_for_leader_epoch", 23, (2, 4), 4),
        Later("describe_configs", 32, (1, 4), 4),
        Later("alter_configs", 33, (0, 2), 2),
        Later("describe_log_dirs", 35, (1, 5), 2),
        Later("create_partitions", 37, (0, 3), 2),
        Later("delete_groups", 42, (0, 2), 2),
        Later("elect_leaders", 43, (0, 2), 2),
        Later("incremental_alter_configs", 44, (0, 1), 1),
        Later("alter_partition_reassignments", 45, (0, 1), 0),
        Later("list_partition_reassignments", 46, (0, 0), 0),
        Later("describe_acls", 29, (1, 3), 2),
        Later("create_acls", 30, (1, 3), 2),
        Later("delete_acls", 31, (1, 3), 2),
        Later("describe_client_quotas", 48, (0, 1), 1),
        Later("alter_client_quotas", 49, (0, 1), 1),
        Later("describe_user_scram_credentials", 50, (0, 0), 0),
        Later("alter_user_scram_credentials", 51, (0, 0), 0),
        Later("offset_delete", 47, (0, 0), NEVER),
        Later("describe_cluster", 60, (0, 2), 0),
        Later("describe_producers", 61, (0, 0), 0),
        Later("describe_transactions", 65, (0, 0), 0),
        Later("list_transactions", 66, (0, 1), 0),
        consumer_group_heartbeat,
        Later("consumer_group_describe", 69, (0, 1), 0),
        Later("describe_topic_partitions", 75, (0, 0), 0),
        share_group_heartbeat,
        Later("share_group_describe", 77, (1, 1), 1),
        share_fetch,
        share_acknowledge,
        Later("describe_share_group_offsets", 90, (0, 1), 0),
        Later("alter_share_group_offsets", 91, (0, 0), 0),
        Later("delete_share_group_offsets", 92, (0, 0), 0),
        Later("peek", 10001, (0, 0), 0, advertised=False),
        Later("peer", 10004, (0, 0), 0, advertised=False),
        Later("copy_letters", 10005, (0, 0), 0, advertised=False),
        Later("node_metrics", 10002, (0, 0), 0, advertised=False),
        Later("access_keys", 10008, (0, 0), 0, advertised=False),
        Later("callers", 10009, (0, 0), 0, advertised=False),
        Later("shared_transactions", 10010, (0, 0), 0, advertised=False),
        Later("backup", 10011, (0, 0), 0, advertised=False),
        receipt_key,
        nodes,
    ],
)
