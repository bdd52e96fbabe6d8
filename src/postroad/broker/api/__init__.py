"""One file for each Kafka API: its key, the versions it answers, and `handle`.

A file here is all there is to an API on this side of the wire; adding it to `ALL` registers and
advertises it. CONTRIBUTING.md walks through adding one.
"""

from __future__ import annotations

from typing import Final, cast

from postroad.broker.api import (
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from postroad.broker.dispatch import Api

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
        describe_groups,
        list_groups,
        api_versions,
        create_topics,
        delete_topics,
        delete_records,
        init_producer_id,
        offset_for_leader_epoch,
        describe_configs,
        alter_configs,
        describe_log_dirs,
        create_partitions,
        delete_groups,
        incremental_alter_configs,
        offset_delete,
        describe_cluster,
        describe_producers,
        consumer_group_heartbeat,
        consumer_group_describe,
        describe_topic_partitions,
    ],
)
