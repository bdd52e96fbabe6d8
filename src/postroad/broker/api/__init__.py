"""One file for each Kafka API: its key, the versions it answers, and `handle`.

A file here is all there is to an API on this side of the wire; adding it to `ALL` registers and
advertises it. CONTRIBUTING.md walks through adding one.
"""

from __future__ import annotations

from typing import Final, cast

from postroad.broker.api import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from postroad.broker.dispatch import Api

ALL: Final = cast(
    "list[Api]",
    [
        produce,
        fetch,
        list_offsets,
        metadata,
        find_coordinator,
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
        incremental_alter_configs,
        describe_cluster,
        describe_producers,
        describe_topic_partitions,
    ],
)
