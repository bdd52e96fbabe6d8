"""Replicas, leaders and the coordination store on a page.

Each figure is told by one node, so that sums over nodes are right: what concerns a partition by its leader,
what nobody leads and what moves by the controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from postroad.broker.partition import Partition
from postroad.cluster.keys import PartitionState
from postroad.cluster.reassignment import is_moving
from postroad.metrics.page import COUNTER, GAUGE, Page, labels

if TYPE_CHECKING:
    from postroad.broker.node import Node


def write_cluster(page: Page, node: Node) -> Iterator[None]:
    """One step for each partition that is led here."""
    image, me = node.image, node.settings.node.id
    is_controller = image.controller == me
    states = [state for topic in image.topics.values() for state in topic.partitions]
    led = [partition for partition in node.partitions if partition.leads]
    owned = [state for state in states if state.leader == me]
    leaderless = sum(state.leader not in image.nodes for state in states)
    counts = node.roles.counts
    for name, kind, meaning, value in (
        ("cluster_nodes", GAUGE, "Nodes that are registered, as this one sees it.", len(image.nodes)),
        ("cluster_controller", GAUGE, "1: this node is the controller.", int(is_controller)),
        ("store_current", GAUGE, "1: its lease in the coordination store lasts.", int(_is_current(node))),
        (
            "store_renewal_seconds",
            GAUGE,
            "How long the coordination store took to renew that lease the last time.",
            node.registration.renewal_ms / 1000,
        ),
        (
            "store_renewals_failed_total",
            COUNTER,
            "Renewals of that lease that failed since its start.",
            node.registration.failed_renewals,
        ),
        ("partitions_led", GAUGE, "Partitions that it leads.", len(led)),
        (
            "partitions_under_replicated",
            GAUGE,
            "Partitions that it leads with replicas that are not in sync.",
            sum(map(is_under_replicated, owned)),
        ),
        (
            "partitions_below_minimum",
            GAUGE,
            "Partitions that it leads and that refuse acks=all: too few replicas are in sync.",
            sum(partition.lacks_replicas for partition in led),
        ),
        (
            "partitions_leaderless",
            GAUGE,
            "Partitions without a leader; told by the controller.",
            leaderless if is_controller else 0,
        ),
        (
            "partitions_moving",
            GAUGE,
            "Partitions that are being moved; told by the controller.",
            sum(map(is_moving, states)) if is_controller else 0,
        ),
        ("elections_total", COUNTER, "Leaderships that it has taken since its start.", counts.elected),
        ("isr_joins_total", COUNTER, "Replicas that came into sync with what it leads.", counts.joined),
        ("isr_leaves_total", COUNTER, "Replicas that fell out of sync with what it leads.", counts.left),
    ):
        page.family(f"postroad_{name}", kind, meaning).add(value)
    lag = page.family("postroad_replica_lag_messages", GAUGE, "Messages that a replica has yet to copy.")
    for partition in led:
        for replica, messages in _lags(partition):
            lag.add(messages, labels(topic=partition.topic, partition=partition.index, replica=replica))
        yield


def is_under_replicated(state: PartitionState) -> bool:
    """Whether a replica is out of sync that was in sync once; new ones have yet to copy all."""
    return not set(state.replicas) <= {*state.isr, *state.adding}


def _is_current(node: Node) -> bool:
    return node.registration.is_current(node.clock.monotonic_ms())


def _lags(partition: Partition) -> list[tuple[int, int]]:
    """Each follower with how far it is behind; one that has not fetched yet lacks all of it."""
    leadership = partition.leadership
    if leadership is None:
        return []
    end, start = partition.log.written_offset, partition.log.start_offset
    followers = [replica for replica in leadership.replicas if replica != leadership.node_id]
    return [(replica, max(end - max(leadership.promise(replica), start), 0)) for replica in followers]
