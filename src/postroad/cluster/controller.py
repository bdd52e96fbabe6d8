"""What may change in the cluster, and how: pure decisions over an image.

A decision is what to hand to `store.commit`. It compares everything that it was based on, so that it
takes effect only if that still holds; whoever gets None waits for the image to follow and decides anew.
Nothing here changes the image: the commit comes back as events.

Topics are decided on in `topics`, configs of topics and groups in `config_changes`; both are gathered
here, with the cluster's own identity, registrations and producer ids. What nodes and the controller decide
about replicated partitions is in `leadership`, `reconciliation` and `membership`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from postroad.cluster import keys
from postroad.cluster.config_changes import (
    ConfigChange,
    ConfigOperation,
    alter_config,
    alter_group_config,
    delete_group_config,
    note_topic,
    replace_config,
    replace_group_config,
)
from postroad.cluster.decision import Decision
from postroad.cluster.ids import id_text, make_id
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.ledgers import add_ledgers
from postroad.cluster.store import ABSENT, Compare, Put
from postroad.cluster.topics import add_partitions, create_topic, delete_topic, finish_deletion
from postroad.errors import NodeIdTaken

__all__ = [
    "ConfigChange",
    "ConfigOperation",
    "Decision",
    "ProducerIds",
    "add_ledgers",
    "add_partitions",
    "allocate_producer_ids",
    "alter_config",
    "alter_group_config",
    "check_node_id",
    "create_cluster",
    "create_receipt_key",
    "create_topic",
    "delete_group_config",
    "delete_topic",
    "finish_deletion",
    "note_topic",
    "register_node",
    "replace_config",
    "replace_group_config",
]

# A node asks for this many at a time, so that InitProducerId seldom waits for the store. A restart
# loses what is left of a block: of 2**63 ids that is nothing.
PRODUCER_IDS_PER_BLOCK: Final = 1000


class ProducerIds(NamedTuple):
    """Ids from `first` up to but without `end`, and the decision that makes them the caller's own."""

    first: int
    end: int
    decision: Decision


def create_cluster(image: Image, random: bytes) -> Decision:
    """A new cluster with an id from 16 random bytes, on a store that holds none."""
    assert image.cluster_id is None
    value = keys.encode(keys.ClusterValue(id_text(make_id(random))))
    return Decision([Compare(keys.CLUSTER, ABSENT)], [Put(keys.CLUSTER, value)])


def check_node_id(image: Image, node: NodeEntry, takes_over: bool = False) -> None:
    """Raise NodeIdTaken while another process is registered under the node's id.

    A node that starts `takes_over` what is registered with its own data directory: it holds that directory's
    lock, so the other process has ended. One that only lost its lease takes nothing from its successor.
    """
    holder = image.nodes.get(node.id)
    if holder is None or holder.incarnation == node.incarnation:
        return
    if takes_over and node.directory and holder.directory == node.directory:
        return
    raise NodeIdTaken(
        f"node.id {node.id} is taken by the node at {holder.host}:{holder.port}. Give this node another; "
        f"if that one has just ended, try again when its lease has run out."
    )


def register_node(image: Image, node: NodeEntry, lease: int, takes_over: bool = False) -> Decision:
    """The node is there for as long as its lease lives. Raises what `check_node_id` raises."""
    check_node_id(image, node, takes_over)
    key = keys.node_key(node.id)
    fields = msgspec.structs.asdict(node)
    del fields["id"]
    value = keys.encode(keys.NodeValue(**fields))
    return Decision([Compare(key, image.key_revision(key))], [Put(key, value, lease)])


def allocate_producer_ids(image: Image, count: int = PRODUCER_IDS_PER_BLOCK) -> ProducerIds:
    """A block that no node gets twice; it may be used once the decision is committed."""
    first, end = image.next_producer_id, image.next_producer_id + count
    compare = Compare(keys.PRODUCER_IDS, image.key_revision(keys.PRODUCER_IDS))
    put = Put(keys.PRODUCER_IDS, keys.encode(keys.ProducerIdsValue(end)))
    return ProducerIds(first, end, Decision([compare], [put]))


def create_receipt_key(image: Image, random: bytes) -> Decision:
    """The cluster has one, once and for all: a new one would make receipts worthless that are under way."""
    if image.receipt_key is not None:
        return Decision([], [])
    value = keys.encode(keys.ReceiptsValue(random))
    return Decision([Compare(keys.RECEIPTS, ABSENT)], [Put(keys.RECEIPTS, value)])
