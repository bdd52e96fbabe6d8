"""The keys of a cluster's store in a backup, and what becomes of them on the one node that restores it.

In the backup they are JSON, so that anybody can look at them:

    [["cluster", "<base64 of the value>", false], …]        key, value, whether the value is sealed

A restored partition has one replica, which leads it in an epoch far above all that the old cluster can have
had since: a consumer or a producer that has seen more than the backup has is told so (KIP-320), instead of
being given other messages at the same offsets. Producer ids begin far above, too: one that the old cluster
gave away after the backup is not given to somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.backups.cut import states_of, topics_in
from postroad.backups.errors import BackupDamaged, BackupError
from postroad.backups.manifest import LogCopy, LogKey
from postroad.cluster import keys
from postroad.security.sealing import unseal
from postroad.wire.backup import StoreKey

EPOCHS_AHEAD: Final = 1000  # elections since the backup
PRODUCER_IDS_AHEAD: Final = 1_000_000  # a thousand blocks


def encode(entries: list[StoreKey]) -> bytes:
    return msgspec.json.encode(sorted(entries, key=lambda entry: entry.key)) + b"\n"


def decode(content: bytes) -> list[StoreKey]:
    """The keys that `encode` wrote. Raises BackupDamaged."""
    try:
        return msgspec.json.decode(content, type=list[StoreKey])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BackupDamaged(f"the keys of the coordination store can't be read: {error}") from None


def opened(entries: list[StoreKey], master: bytes | None) -> dict[str, bytes]:
    """All values, unsealed. Raises BackupError without the master key, or with another one."""
    if master is None and any(entry.is_sealed for entry in entries):
        raise BackupError(
            "passwords' verifiers and web hooks' secrets in this backup are sealed with the cluster's master "
            "key: name its file with --master-key-file"
        )
    found = {}
    for entry in entries:
        try:
            value = unseal(master, entry.key, entry.value) if entry.is_sealed and master else entry.value
        except ValueError as error:
            raise BackupError(f"{error}: name the file of the cluster's own master key") from None
        found[entry.key] = value
    return found


def for_one_node(values: Mapping[str, bytes], logs: Mapping[LogKey, LogCopy], node: int) -> dict[str, bytes]:
    """The store of a single node that leads everything. Raises BackupDamaged if logs are missing."""
    made = {key: value for key, value in values.items() if not key.startswith(keys.PARTITIONS)}
    if keys.CLUSTER not in made:
        raise BackupDamaged("the backup does not say of which cluster it is")
    for topic in topics_in([StoreKey(*item) for item in values.items()]).values():
        missing = [key for key in topic.logs() if key not in logs]
        if missing:
            raise BackupDamaged(f"the backup has no log of {topic.name}/{missing[0].index}")
        states = tuple(
            _alone(state, node, _last_epoch(logs, topic.id, index))
            for index, state in enumerate(states_of(values, topic.id))
        )
        for chunk in keys.chunks(states):
            made[keys.chunk_key(topic.id, chunk.number)] = keys.encode(keys.ChunkValue(chunk.states))
    if keys.PRODUCER_IDS in made:
        known = keys.decode(keys.PRODUCER_IDS, made[keys.PRODUCER_IDS], keys.ProducerIdsValue)
        made[keys.PRODUCER_IDS] = keys.encode(keys.ProducerIdsValue(known.next + PRODUCER_IDS_AHEAD))
    return made


def _alone(state: keys.PartitionState, node: int, last_epoch: int) -> keys.PartitionState:
    epoch = max(state.leader_epoch, last_epoch) + EPOCHS_AHEAD
    return keys.PartitionState(node, epoch, (node,), (node,), ledger=state.ledger)


def _last_epoch(logs: Mapping[LogKey, LogCopy], topic_id: str, index: int) -> int:
    copies = (logs.get(LogKey(topic_id, index, is_ledger)) for is_ledger in (False, True))
    return max((part.last_epoch for copy in copies if copy for part in copy.parts), default=0)
