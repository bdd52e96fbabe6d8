"""How the state of a stopped node gets into a cluster's coordination store: what to write, and when not to.

All keys are copied but those that hang on leases (nodes, controller). The key `cluster` comes last: a node
with messages refuses a store without it, so a copy that was interrupted is used by nobody, and the next
attempt goes on with it. A store that holds anything else is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.store import ABSENT, Compare, Operation, Put, Snapshot, StoreEntry
from postroad.errors import ConfigurationError

# Of what etcd takes in one commit (`store`) a good half: a commit compares each key, too.
COMMIT_KEYS: Final = 60
COMMIT_BYTES: Final = 512 * 1024


def plan(source: Snapshot, target: Snapshot) -> list[Decision]:
    """What brings the target to the state of the source; nothing if it is there already.

    Raises ConfigurationError if the source has no cluster, or the target has something else.
    """
    wanted = {entry.key: entry for entry in source.entries if not _is_leased(entry.key)}
    if keys.CLUSTER not in wanted:
        raise ConfigurationError("The coordination store in the data directory is empty: nothing to import.")
    there = {entry.key: entry for entry in target.entries}
    for key, entry in there.items():
        if key not in wanted or wanted[key].value != entry.value:
            raise ConfigurationError(
                f"The target store is in use: its key {key!r} is not what the data directory has. Nothing "
                "was changed. Choose another path in etcd, or delete all keys below this one."
            )
    missing = [entry for key, entry in wanted.items() if key not in there]
    return [_copied(part) for part in _parts(missing)]


def _is_leased(key: str) -> bool:
    return key == keys.CONTROLLER or key.startswith(keys.NODES)


def _parts(entries: list[StoreEntry]) -> Iterator[list[StoreEntry]]:
    """Cut the entries into commits that a store takes; the key of the cluster comes last, alone."""
    part: list[StoreEntry] = []
    size = 0
    for entry in sorted(entries, key=lambda entry: entry.key == keys.CLUSTER):
        is_full = len(part) >= COMMIT_KEYS or size + len(entry.value) > COMMIT_BYTES
        if part and (is_full or entry.key == keys.CLUSTER):
            yield part
            part, size = [], 0
        part.append(entry)
        size += len(entry.value)
    if part:
        yield part


def _copied(entries: list[StoreEntry]) -> Decision:
    compares = [Compare(entry.key, ABSENT) for entry in entries]
    if entries[0].key != keys.CLUSTER:
        compares.append(Compare(keys.CLUSTER, ABSENT))
    operations: list[Operation] = [Put(entry.key, entry.value) for entry in entries]
    return Decision(compares, operations)
