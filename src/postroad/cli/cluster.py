"""`postroad cluster …`"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import cluster_chaos, cluster_import, cluster_moves, cluster_rate, output
from postroad.cli.command import Group
from postroad.cli.ending import FAILED
from postroad.cli.session import cluster_options, json_option, talk

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.metadata import Cluster, Partition
    from postroad.client.nodes import NodeFacts

NODE_COLUMNS: Final = ("node", "address", "rack", "state", "leads", "replicas", "controller")
PARTITION_COLUMNS: Final = ("topic", "partition", "leader", "replicas", "in sync", "finding")
SHOWN_MAX: Final = 20  # partitions of which something is wrong; --json has all of them


@click.group(cls=Group)
def cluster() -> None:
    """Show the nodes of a cluster and what is wrong with it, move partitions, add and remove nodes."""


cluster.add_command(cluster_moves.reassign)
cluster.add_command(cluster_moves.rebalance)
cluster.add_command(cluster_moves.drain)
cluster.add_command(cluster_moves.remove)
cluster.add_command(cluster_rate.rate)
cluster.add_command(cluster_import.import_node)
cluster.add_command(cluster_chaos.chaos)


@cluster.command()
@json_option
@cluster_options
@click.pass_context
def status(context: click.Context, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show the nodes, the controller, and partitions that lack a leader or replicas in sync.

    The exit code is 1 if a partition lacks one of them, or a node is gone or only starting.
    """

    async def work(client: Client) -> tuple[Cluster, list[NodeFacts], set[int]]:
        from postroad.client import moves
        from postroad.client.nodes import describe

        drained = {node.id for node in await moves.nodes(client) if node.drained}
        return await client.retry(client.cluster), await describe(client), drained

    seen, registered, drained = talk(bootstrap, timeout_s, work)
    nodes, partitions = _nodes(seen, registered, drained), list(_wrong_partitions(seen))
    is_well = _report(seen, nodes, partitions, as_json)
    if not is_well:
        context.exit(FAILED)


def _nodes(
    seen: Cluster, registered: Sequence[NodeFacts], drained: Collection[int]
) -> list[tuple[output.Cell, ...]]:
    """A row for each node, also for those that hold replicas and are gone."""
    leads = Counter(partition.leader for partition in _partitions(seen))
    holds = Counter(node for partition in _partitions(seen) for node in partition.replicas)
    known = {facts.id: facts for facts in registered}
    rows: list[tuple[output.Cell, ...]] = []
    for node in sorted(known.keys() | holds.keys()):
        facts = known.get(node)
        state = "gone" if facts is None else "starting" if facts.is_fenced else "serving"
        if node in drained and facts is not None:
            state = "drained" if not holds[node] else "draining"
        address, rack = (str(facts.address), facts.rack or None) if facts is not None else (None, None)
        rows.append((node, address, rack, state, leads[node], holds[node], node == seen.controller))
    return rows


def _partitions(seen: Cluster) -> Iterator[Partition]:
    return (partition for topic in seen.topics.values() for partition in topic.partitions)


def _wrong_partitions(seen: Cluster) -> Iterator[tuple[output.Cell, ...]]:
    for name, topic in sorted(seen.topics.items()):
        for partition in topic.partitions:
            has_leader = partition.leader in seen.nodes
            if has_leader and len(partition.isr) == len(partition.replicas):
                continue
            leader = partition.leader if has_leader else None
            finding = "replicas lag behind or are down" if has_leader else "has no leader"
            yield name, partition.number, leader, _texts(partition.replicas), _texts(partition.isr), finding


def _texts(nodes: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, nodes))


def _report(
    seen: Cluster, nodes: Sequence[Sequence[Any]], partitions: Sequence[Sequence[Any]], as_json: bool
) -> bool:
    """Print it. Returns whether nothing is wrong."""
    away = sum(row[NODE_COLUMNS.index("state")] in ("gone", "starting") for row in nodes)
    is_well = not away and not partitions
    count = sum(1 for _ in _partitions(seen))
    leaderless = sum(row[PARTITION_COLUMNS.index("leader")] is None for row in partitions)
    if as_json:
        output.write_json(
            {
                "cluster": seen.id,
                "well": is_well,
                "controller": seen.controller,
                "nodes": output.objects(NODE_COLUMNS, nodes),
                "partitions": count,
                "without_leader": leaderless,
                "under_replicated": len(partitions) - leaderless,
                "wrong_partitions": output.objects(PARTITION_COLUMNS, partitions),
            }
        )
        return is_well
    click.echo(f"cluster {seen.id}")
    output.table(NODE_COLUMNS, nodes)
    if partitions:
        output.table(PARTITION_COLUMNS, partitions[:SHOWN_MAX])
        if len(partitions) > SHOWN_MAX:
            click.echo(f"and {len(partitions) - SHOWN_MAX} more; --json shows all of them")
    down = f", {away} nodes not serving" if away else ""
    click.echo(
        f"{count} partitions: {leaderless} without a leader, {len(partitions) - leaderless} under-replicated"
        f"{down}"
    )
    return is_well
