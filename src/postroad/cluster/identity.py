"""The file that ties a data directory to its cluster: `node.json`, beside the logs.

    {"version": 1, "cluster_id": "…", "node_id": 1, "directory": "…", "seen_revision": 0}

The cluster's id stands in two places, here and in the coordination store. Only if both agree may a node
take what the store says about topics for the truth about these logs. An empty or a foreign store, say
after a wrong path or a lost file, must never make it delete anything: it refuses to start.

The directory has an id of its own, which stands in the node's entry in the store, too. A process that finds
it there holds the directory's lock, so the process that wrote the entry is dead, and its entry may be
replaced at once. Files of older versions have no such id; the next start adds one.

`seen_revision` is a revision of the store that this node has followed: the one in which it last deleted a
replica that had moved away, and with etcd that of its last start, stop or minute. A store that was restored
from an older backup still counts on that replica, and may name leaders and topics that are long gone, so the
node refuses to start with it.

The file is written before the first log and replaced in one step (temporary file, sync, rename, sync of the
directory), so a crash leaves the old one or the new one, and never logs without it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.errors import ConfigurationError

FILE_NAME: Final = "node.json"
VERSION: Final = 1
BYTES_MAX: Final = 4096  # a handful of fields; anything longer is not ours


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    cluster_id: str
    node_id: int
    directory: str = ""
    seen_revision: int = 0
    version: int = VERSION


def decode_identity(content: bytes, path: str) -> Identity:
    """What the file says, which lies at this path. Raises ConfigurationError if it is broken."""
    try:
        identity = msgspec.json.decode(content, type=Identity)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    if identity.version > VERSION:
        raise ConfigurationError(f"{path} was written by a newer Postroad. Update this one.")
    return identity


def encode_identity(identity: Identity) -> bytes:
    return msgspec.json.encode(identity) + b"\n"


def unreadable(path: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"{path} can't be read ({error}). Restore it from a backup.")


def check_identity(
    identity: Identity | None, *, cluster_id: str | None, node_id: int, has_logs: bool, revision: int = 0
) -> None:
    """Raises ConfigurationError unless these logs belong to this store's cluster and to this node.

    `cluster_id` is the image's, None if the store is empty; `has_logs`: there are partition directories;
    `revision`: the store's.
    Passing means: the same cluster, or nothing here yet. The caller then creates the cluster if the
    store has none, and writes the identity if there is none, before it makes the first log.
    """
    if identity is None:
        if has_logs:
            raise ConfigurationError(
                f"There are logs, but {FILE_NAME} beside them is missing: nobody knows whose they are. "
                f"Nothing was changed. Restore {FILE_NAME}, or start with another data.dir."
            )
        return
    if cluster_id is None:
        raise ConfigurationError(
            f"The coordination store is empty, but this data directory belongs to cluster "
            f"{identity.cluster_id}. Nothing was changed. Restore the store, or start with another data.dir."
        )
    if identity.cluster_id != cluster_id:
        raise ConfigurationError(
            f"This data directory belongs to cluster {identity.cluster_id}, the coordination store to "
            f"{cluster_id}. Nothing was changed. Start with the store that belongs to it."
        )
    if identity.node_id != node_id:
        raise ConfigurationError(
            f"This data directory belongs to node {identity.node_id}, but node.id is {node_id}. "
            f"Set node.id to {identity.node_id}, or start with another data.dir."
        )
    if revision < identity.seen_revision:
        raise ConfigurationError(
            f"The coordination store is at revision {revision}, but this node has followed it to revision "
            f"{identity.seen_revision}: the store is an older one, perhaps a restored backup, and may count "
            "on replicas and leaders that are gone. Nothing was changed. Start with the newest store. If "
            "there is no newer one, start this node once with an empty data.dir and --set node.replace=true."
        )
