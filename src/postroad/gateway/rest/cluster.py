"""The cluster over REST: its nodes and what is wrong with it; drains, and preferred leaders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from postroad.client import moves, nodes
from postroad.client.client import Client
from postroad.client.metadata import Cluster, Partition, TopicPartition
from postroad.client.moves import Moving
from postroad.client.nodes import NodeFacts
from postroad.gateway.node_figures import NodeFigures
from postroad.gateway.rest import problems
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.in_person import as_caller, note
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED, Refused
from postroad.gateway.security.rights import ALTER, DESCRIBE, Rights
from postroad.wire.nodes import CancelDrain, DrainNode, NodeStanding

SHOWN_MAX: Final = 1000  # partitions of which something is to be said


class ClusterNode(Struct, kw_only=True):
    """`leads` and `replicas` count partitions, `lagging` those of its replicas that are not in sync. What the
    node itself has to tell is null while it does not answer."""

    id: int
    host: str | None
    port: int | None
    rack: str
    state: Annotated[str, Meta(description="serving, starting, draining, drained, or gone.")]
    is_controller: bool
    leads: int
    replicas: int
    lagging: int
    leaving: Annotated[int, Meta(description="Of its replicas, those that are moving away from it.")]
    stuck: Annotated[int, Meta(description="Of a drain: partitions that no other node can take.")]
    version: str | None = None
    uptime_s: float | None = None
    cpu: Annotated[float | None, Meta(description="The part of a core that it took lately.")] = None
    memory_bytes: int | None = None
    connections: int | None = None
    disk_bytes: int | None = None
    disk_free_bytes: int | None = None


class WrongPartition(Struct):
    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    finding: str


class MovingPartition(Struct):
    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]


class ClusterDetails(Struct):
    """`wrong` and `moving` show the first 1,000."""

    id: str
    controller: int
    nodes: list[ClusterNode]
    topics: int
    partitions: int
    without_leader: int
    under_replicated: int
    not_preferred: Annotated[int, Meta(description="Led by another than their first replica.")]
    racks: Annotated[dict[str, int], Meta(description="How many nodes are in each rack.")]
    wrong: list[WrongPartition]
    moving: list[MovingPartition]


class Elected(Struct):
    """Partitions that were not led by their first replica: how many are now, and why others are not."""

    elected: int
    failed: list[str]


@endpoint("GET", "/v1/cluster", "Get the cluster: its nodes, and what is wrong.", Rights(cluster=DESCRIBE))
async def get_cluster(call: Call[Nothing, Nothing]) -> ClusterDetails:
    return await _details(call)


@endpoint(
    "POST", "/v1/cluster/nodes/{node}/drain", "Move everything away from a node.", Rights(cluster=ALTER),
    status=202, admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def drain_node(call: Call[Nothing, Nothing]) -> ClusterDetails:
    """The node may be alive or dead, and gets nothing new until the drain is cancelled. It runs by itself;
    `GET /v1/cluster` tells how many replicas are left. Where requests are users' nodes are asked in the
    caller's own name, which takes the caller's password (`Authorization: Basic`)."""
    return await _order(call, DrainNode(int(call.path["node"])))


@endpoint(
    "POST", "/v1/cluster/nodes/{node}/cancel-drain", "Let a node have partitions again.",
    Rights(cluster=ALTER), admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def cancel_drain(call: Call[Nothing, Nothing]) -> ClusterDetails:
    """What has left it stays where it is. As to users, see drain."""
    return await _order(call, CancelDrain(int(call.path["node"])))


@endpoint(
    "POST", "/v1/cluster/elect-preferred-leaders", "Let the first replica of each partition lead it.",
    Rights(cluster=ALTER), admin=True,
)  # fmt: skip
async def elect_preferred_leaders(call: Call[Nothing, Nothing]) -> Elected:
    """Where it is in sync. Nodes do so by themselves after a while. As to users, see drain."""
    async with as_caller(call) as client:
        outcomes = await moves.elect_preferred(client)
    if call.access.is_guarded:
        note(call, "leaders elected", count=len(outcomes))
    failed = [f"{where}: {error}" for where, error in sorted(outcomes.items()) if error is not None]
    return Elected(len(outcomes) - len(failed), failed[:SHOWN_MAX])


async def _order(call: Call[Any, Any], order: DrainNode | CancelDrain) -> ClusterDetails:
    standings = await moves.nodes(call.gateway.client)
    if order.node not in {each.id for each in standings}:
        raise Refused(problems.NOT_FOUND, f"There is no node {order.node} in this cluster.")
    async with as_caller(call) as client:
        standings = await moves.nodes(client, order)
    if call.access.is_guarded:
        note(call, "node changed", node=order.node, order=type(order).__name__)
    return await _details(call, standings)


async def _details(call: Call[Any, Any], told: list[NodeStanding] | None = None) -> ClusterDetails:
    client: Client = call.gateway.client
    standings = {each.id: each for each in told or await moves.nodes(client)}
    seen = await client.retry(client.cluster)
    registered = {each.id: each for each in await nodes.describe(client)}
    moving = await moves.moving(client)
    figures = await call.gateway.figures.of(registered)
    return _written(seen, standings, registered, moving, figures)


def _written(
    seen: Cluster,
    standings: dict[int, NodeStanding],
    registered: dict[int, NodeFacts],
    moving: dict[TopicPartition, Moving],
    figures: dict[int, NodeFigures],
) -> ClusterDetails:
    partitions = [(name, part) for name, topic in sorted(seen.topics.items()) for part in topic.partitions]
    wrong = list(_wrong(seen, partitions))
    leaderless = sum(each.leader is None for each in wrong)
    holds = Counter(node for _, part in partitions for node in part.replicas)
    ids = sorted(registered.keys() | standings.keys() | holds.keys())
    racks = Counter(facts.rack for facts in registered.values())
    shown = [MovingPartition(*where, *map(list, each)) for where, each in sorted(moving.items())[:SHOWN_MAX]]
    return ClusterDetails(
        seen.id or "",
        seen.controller,
        [
            _node(seen, [part for _, part in partitions], node, standings, registered, figures.get(node))
            for node in ids
        ],
        len(seen.topics),
        len(partitions),
        leaderless,
        len(wrong) - leaderless,
        sum(bool(part.replicas) and part.leader != part.replicas[0] for _, part in partitions),
        dict(sorted(racks.items())),
        wrong[:SHOWN_MAX],
        shown,
    )


def _wrong(seen: Cluster, partitions: list[tuple[str, Partition]]) -> Iterator[WrongPartition]:
    for name, part in partitions:
        has_leader = part.leader in seen.nodes
        if has_leader and len(part.isr) == len(part.replicas):
            continue
        finding = "replicas lag behind or are down" if has_leader else "has no leader"
        leader = part.leader if has_leader else None
        yield WrongPartition(name, part.number, leader, list(part.replicas), list(part.isr), finding)


def _node(
    seen: Cluster,
    partitions: list[Partition],
    node: int,
    standings: dict[int, NodeStanding],
    registered: dict[int, NodeFacts],
    figures: NodeFigures | None,
) -> ClusterNode:
    facts, standing = registered.get(node), standings.get(node, NodeStanding(node))
    held = [part for part in partitions if node in part.replicas]
    details = ClusterNode(
        id=node,
        host=None if facts is None else facts.address.host,
        port=None if facts is None else facts.address.port,
        rack=standing.rack if facts is None else facts.rack,
        state=_state(facts, standing),
        is_controller=node == seen.controller,
        leads=sum(part.leader == node for part in partitions),
        replicas=len(held),
        lagging=sum(node not in part.isr for part in held),
        leaving=standing.leaves,
        stuck=standing.stuck,
    )
    if figures is not None:
        details.version, details.uptime_s, details.cpu = figures.version, figures.uptime_s, figures.cpu
        details.memory_bytes, details.connections = figures.memory_bytes, figures.connections
        details.disk_bytes, details.disk_free_bytes = figures.disk_bytes, figures.disk_free_bytes
    return details


def _state(facts: NodeFacts | None, standing: NodeStanding) -> str:
    if facts is None:
        return "gone"
    if standing.drained:
        return "draining" if standing.replicas else "drained"
    return "starting" if facts.is_fenced else "serving"
