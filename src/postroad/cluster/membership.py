"""Decisions about nodes: what an entry says, who is the controller, who is dead, who is drained.

A node's entry and the controller's key hang on the node's lease. Neither is a lock: who holds one may be
paused and hear of its end late. So every commit of a controller compares the key's revision, and a change of
the ISR compares the entry of its leader and of whoever joins.

The revision of an entry is the node's broker epoch. It changes when the entry is written anew, for a new
process as for a new state or a fence; a process that only wrote its entry anew has lost nothing, so its old
epoch could still be trusted, but nobody needs to: its next fetch carries the new one.
"""

from __future__ import annotations

from collections.abc import Collection

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.ids import id_text
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.store import ABSENT, Compare, Delete, Operation, Put
from postroad.errors import ConfigurationError, PolicyViolation

NOTHING = Decision([], [])


def own_entry(image: Image, node: int) -> Compare:
    """Holds until the node's entry is written anew: what its dead process sent late has no effect."""
    return Compare(keys.node_key(node), image.node_epoch(node))


def is_controller(image: Image, node: int) -> Compare:
    """Holds while the node has the controller's key that the image shows."""
    assert image.controller == node
    return Compare(keys.CONTROLLER, image.key_revision(keys.CONTROLLER))


def check_directory(image: Image, node: int, directory: str, replaces: bool) -> None:
    """Raise ConfigurationError if another data directory holds the node's replicas.

    What that one has promised is not in this one: whoever counts on it would lose messages. `replaces`: the
    operator says that the other one is gone.
    """
    known = image.directories.get(node)
    if known not in (None, directory) and not replaces:
        raise ConfigurationError(
            f"Node {node} of this cluster has its replicas in another data directory ({known}). Nothing was "
            f"changed. Start it with that one, or give this node another node.id. If that directory is lost, "
            f"start once with --set node.replace=true: its replicas are then copied from other nodes."
        )


def note_directory(image: Image, node: int, directory: str) -> Decision:
    """The node's replicas lie in this directory from now on; after it has left what the last one promised."""
    key = keys.directory_key(node)
    if image.directories.get(node) == directory:
        return NOTHING
    put = Put(key, keys.encode(keys.DirectoryValue(directory)))
    return Decision([own_entry(image, node), Compare(key, image.key_revision(key))], [put])


def claim_controller(image: Image, node: int, lease: int) -> Decision:
    """The node becomes the controller if there is none; it must be registered under this lease, and serve.

    A key whose node is gone counts as none: it stays for a moment where an entry was deleted before its
    lease ended.
    """
    entry = image.nodes.get(node)
    if entry is None or entry.state == keys.STARTING or image.controller in image.nodes:
        return NOTHING
    vacant = Compare(keys.CONTROLLER, image.key_revision(keys.CONTROLLER))
    put = Put(keys.CONTROLLER, keys.encode(keys.ControllerValue(node)), lease)
    return Decision([own_entry(image, node), vacant], [put])


def declare_dead(image: Image, node: int) -> Decision:
    """Delete the entry of a node that was found dead, and its controller's key with it; any peer may.

    It takes effect only if the node has not registered anew. If it lives after all, epochs fence what it
    leads, and it must register anew although its lease has not ended.
    """
    if node not in image.nodes:
        return NOTHING
    compares: list[Compare] = [own_entry(image, node)]
    deletes: list[Operation] = [Delete(keys.node_key(node))]
    if image.controller == node:
        compares.append(is_controller(image, node))
        deletes.append(Delete(keys.CONTROLLER))
    return Decision(compares, deletes)


def drain(image: Image, node: int) -> Decision:
    """The node is to be emptied, be it alive or dead; until that is cancelled it gets nothing new."""
    if node in image.drains:
        return NOTHING
    key = keys.drain_key(node)
    return Decision([Compare(key, image.key_revision(key))], [Put(key, keys.encode(keys.DrainValue()))])


def cancel_drain(image: Image, node: int) -> Decision:
    """The node may hold and lead partitions again."""
    if node not in image.drains:
        return NOTHING
    key = keys.drain_key(node)
    return Decision([Compare(key, image.key_revision(key))], [Delete(key)])


def remove(image: Image, node: int) -> Decision:
    """The cluster forgets a node, whose id becomes free. Raises PolicyViolation if it is needed."""
    if node in image.nodes:
        raise PolicyViolation(f"Node {node} is running. Drain it, stop it, then remove it.")
    held = [
        f"{topic.name}-{index}"
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if node in state.replicas
    ]
    if held:
        raise PolicyViolation(
            f"Node {node} holds {len(held)} replicas, such as of {held[0]}. Drain it first, and wait until "
            "it is empty."
        )
    own = (keys.directory_key(node), keys.drain_key(node), keys.node_config_key(str(node)))
    noted = [key for key in own if image.key_revision(key) != ABSENT]
    deleted = [topic for topic in image.deleted.values() if node in topic.nodes]
    operations: list[Operation] = [Delete(key) for key in noted]
    for topic in deleted:
        left = tuple(holder for holder in topic.nodes if holder != node)
        key = keys.deleted_key(id_text(topic.id))
        operations.append(Put(key, keys.encode(keys.DeletedValue(topic.name, left))) if left else Delete(key))
    compares = [Compare(operation.key, image.key_revision(operation.key)) for operation in operations]
    return Decision([Compare(keys.node_key(node), ABSENT), *compares], operations)


def may_lead(image: Image, node: int) -> bool:
    """Whether a leadership may be handed to the node although another could have it."""
    return may_join(image, node) and node not in image.drains


def may_join(image: Image, node: int) -> bool:
    """Whether the node may come into sync: one that stops would leave again, and those that wait for it, too.

    One that is drained may: what no other node can take stays there, and counts.
    """
    entry = image.nodes.get(node)
    return entry is not None and entry.state == keys.SERVING


def placeable(image: Image) -> list[int]:
    """The nodes that may get new replicas, in order."""
    return [node for node in sorted(image.nodes) if may_lead(image, node)]


def down(image: Image) -> list[int]:
    """The nodes that hold replicas or may, and don't serve now, in order."""
    known = sorted({*image.directories, *image.nodes} - image.drains.keys())
    return [node for node in known if not may_lead(image, node)]


def check_level(image: Image, level: int) -> None:
    """Raise ConfigurationError if a node that understands this level would drop what others have written."""
    if level < image.level:
        raise ConfigurationError(
            f"The cluster has been updated to level {image.level}; this version understands level {level}. "
            "Start the newer version."
        )


def check_secure(image: Image, me: NodeEntry, *, is_secured: bool) -> None:
    """Raise ConfigurationError if this node speaks TLS or asks who comes (`is_secured`), and one that runs is
    too old to know of it: they could not follow each other, and users and rules would not hold there."""
    others = [entry for entry in image.nodes.values() if entry.id != me.id]
    old = [entry.id for entry in others if entry.level < keys.SECURITY_LEVEL]
    if old and (me.is_tls or is_secured):
        raise ConfigurationError(
            f"Node {old[0]} runs a version that knows neither TLS nor logins. Update all nodes first, and "
            "set kafka.tls and security.enabled then."
        )


def raise_level(image: Image, controller: int, lost: Collection[int] = ()) -> Decision:
    """The controller notes what all nodes understand once that has risen; it never falls.

    A node that is away, and not `lost`, holds it down: it may come back with the version that it had, and
    would be refused.
    """
    away = image.directories.keys() - image.nodes.keys() - set(lost)
    lowest = min((entry.level for entry in image.nodes.values()), default=0)
    if image.controller != controller or away or lowest <= image.level:
        return NOTHING
    compares = [is_controller(image, controller), *(own_entry(image, node) for node in sorted(image.nodes))]
    compares.append(Compare(keys.LEVEL_KEY, image.key_revision(keys.LEVEL_KEY)))
    return Decision(compares, [Put(keys.LEVEL_KEY, keys.encode(keys.LevelValue(lowest)))])
