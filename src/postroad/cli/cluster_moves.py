"""`postroad cluster reassign`, `rebalance`, `drain` and `remove`: where partitions lie.

Each shows its plan before anything moves. What has begun is seen through by the cluster itself: whoever ends
the command early only stops watching, and `rebalance` begins nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.duration import DurationType, show
from postroad.cli.numbers import INT32_MAX, REPLICAS, WholeNumber
from postroad.cli.session import Failed, cluster_options, talk

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.metadata import TopicPartition
    from postroad.cluster.balance import Move, Placed
    from postroad.wire.nodes import NodeStanding

AT_ONCE: Final = 20  # partitions that are copied at the same time
LOOK_S: Final = 0.5
PLAN_COLUMNS: Final = ("topic", "partition", "before", "after", "bytes to copy")
SHOWN_MAX: Final = 40

NODE_ID: Final = WholeNumber(0, INT32_MAX)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
no_wait_option = click.option("--no-wait", is_flag=True, help="Don't wait until everything has moved.")


@click.command(cls=Command)
@click.argument("topic")
@click.argument("partition", type=WholeNumber(0, INT32_MAX))
@click.argument("nodes", required=False, metavar="[NODE,NODE,…]")
@click.option("--cancel", is_flag=True, help="Cancel the move: the partition goes back to its old nodes.")
@dry_run_option
@no_wait_option
@cluster_options
def reassign(
    topic: str,
    partition: int,
    nodes: str | None,
    cancel: bool,
    dry_run: bool,
    no_wait: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Move a partition to these nodes, the preferred leader first, such as: reassign orders 0 4,2,3."""
    if cancel == (nodes is not None):
        raise click.UsageError("name the nodes, or --cancel a move")
    wanted = None if nodes is None else _node_ids(nodes)

    async def work(client: Client) -> None:
        from postroad.client.metadata import TopicPartition
        from postroad.client.moves import moving, reassign
        from postroad.cluster.balance import Move

        where = TopicPartition(topic, partition)
        seen = await client.retry(lambda: client.cluster([topic]))
        found = seen.topics.get(topic)
        if found is None or partition >= len(found.partitions):
            raise Failed(f"there is no partition {where}")
        begun = (await moving(client)).get(where)
        before = found.partitions[partition].replicas
        if wanted is not None:
            _show_plan([Move(topic, partition, before, wanted)])
        elif begun is None:
            raise Failed(f"{where} is not being moved")
        if dry_run:
            click.echo("nothing was changed (--dry-run)", err=True)
            return
        for error in (await reassign(client, {where: wanted})).values():
            raise Failed(str(error))
        if not no_wait:
            await _watch(client, [where])

    talk(bootstrap, timeout_s, work)


@click.command(cls=Command)
@click.option(
    "--observe",
    "observe_ms",
    type=DurationType(),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="Watch what comes to each partition for so long, and level that, too; 0: don't.",
)
@click.option(
    "--replicas",
    type=REPLICAS,
    help="Give more replicas to partitions that have fewer than so many.",
)
@click.option("--cancel", is_flag=True, help="Let all partitions that are moving end where they began.")
@dry_run_option
@yes_option
@cluster_options
def rebalance(
    observe_ms: int,
    replicas: int | None,
    cancel: bool,
    dry_run: bool,
    yes: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Spread replicas and leaders evenly over nodes and racks: counts, then bytes, then load.

    Load is what comes to a partition, in bytes and messages a second. Nodes that are drained or gone take no
    part. The plan is shown before anything moves. When the command is ended early, what has begun is finished
    and nothing more begins; run it again to go on.
    """
    if cancel:
        talk(bootstrap, timeout_s, _canceller(dry_run, yes))
        return

    async def plan(client: Client) -> list[Move]:
        from postroad.cluster.balance import rebalance as planned

        placed, standings = await _placed(client, observe_ms)
        racks = {node.id: node.rack for node in standings if _takes_part(node)}
        return planned(placed, racks, replicas or 0)

    moves = talk(bootstrap, timeout_s, plan)
    if not moves:
        click.echo("the cluster is balanced: nothing to move")
        return
    _show_plan(moves)
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)
        return
    confirm(f"Move {len(moves)} partitions?", yes)
    talk(bootstrap, timeout_s, _mover(moves))
    click.echo(f"moved {len(moves)} partitions")


@click.command(cls=Command)
@click.argument("node", type=NODE_ID)
@click.option("--cancel", is_flag=True, help="Let the node have partitions again.")
@dry_run_option
@no_wait_option
@cluster_options
def drain(node: int, cancel: bool, dry_run: bool, no_wait: bool, bootstrap: str, timeout_s: float) -> None:
    """Move everything away from a node, alive or dead; it gets nothing new until that is cancelled.

    The command may be ended at any time: the drain goes on.
    """

    async def work(client: Client) -> None:
        from postroad.client.moves import nodes
        from postroad.cluster.balance import without
        from postroad.wire.nodes import CancelDrain, DrainNode

        if cancel:
            _standing(await nodes(client, CancelDrain(node)), node)
            click.echo(f"node {node} may have partitions again")
            return
        placed, standings = await _placed(client)
        _standing(standings, node)
        racks = {each.id: each.rack for each in standings if _takes_part(each)}
        moves = without(placed, racks, {node})
        _show_plan(moves)
        held = sum(node in each.replicas for each in placed)
        if held > len(moves):
            click.echo(
                f"{held - len(moves)} partitions stay on node {node}: no other node can take them", err=True
            )
        if dry_run:
            click.echo("nothing was changed (--dry-run)", err=True)
            return
        await nodes(client, DrainNode(node))
        if not no_wait:
            await _watch_drain(client, node)

    talk(bootstrap, timeout_s, work)


@click.command(cls=Command)
@click.argument("node", type=NODE_ID)
@cluster_options
def remove(node: int, bootstrap: str, timeout_s: float) -> None:
    """Forget a node that is stopped and holds no partitions; its id may be used again."""

    async def work(client: Client) -> None:
        from postroad.client.moves import nodes
        from postroad.wire.nodes import RemoveNode

        await nodes(client, RemoveNode(node))

    talk(bootstrap, timeout_s, work)
    click.echo(f"removed node {node}")


# --- plans -------------------------------------------------------------------------------------------


def _node_ids(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise click.BadParameter("give the ids of nodes, such as 4,2,3", param_hint="NODES")
    return tuple(map(int, text.split(",")))


def _takes_part(node: NodeStanding) -> bool:
    return node.state == "serving" and not node.drained


def _standing(nodes: Sequence[NodeStanding], node: int) -> NodeStanding:
    for each in nodes:
        if each.id == node:
            return each
    raise Failed(f"there is no node {node} in this cluster")


async def _placed(client: Client, observe_ms: int = 0) -> tuple[list[Placed], list[NodeStanding]]:
    """Every partition with where it is going to be and its load, and the nodes."""
    from postroad.client.metadata import TopicPartition
    from postroad.client.moves import Rate, moving, nodes, rates, sizes
    from postroad.cluster.balance import Placed

    standings = await nodes(client)
    seen_rates = {}
    if observe_ms:
        click.echo(f"watching the load for {show(observe_ms)}", err=True)
        running = [node.id for node in standings if node.state == "serving"]
        seen_rates = await rates(client, running, observe_ms / 1000)
    seen = await client.retry(client.cluster)
    leaving = {where: each.removing for where, each in (await moving(client)).items()}
    serving = [node.id for node in standings if node.state == "serving"]
    bytes_of = await sizes(client, serving)
    placed = []
    for name, topic in sorted(seen.topics.items()):
        for partition in topic.partitions:
            where = TopicPartition(name, partition.number)
            gone = leaving.get(where, ())
            stay = tuple(node for node in partition.replicas if node not in gone)
            rate = seen_rates.get(where, Rate(0, 0))
            placed.append(Placed(name, partition.number, stay, bytes_of.get(where, 0), *rate))
    return placed, standings


def _show_plan(moves: Sequence[Move]) -> None:
    rows = [(m.topic, m.index, _ids(m.before), _ids(m.after), m.copied) for m in moves[:SHOWN_MAX]]
    if rows:
        output.table(PLAN_COLUMNS, rows)
    if len(moves) > SHOWN_MAX:
        click.echo(f"and {len(moves) - SHOWN_MAX} more")
    copied = sum(move.copied for move in moves)
    click.echo(f"{len(moves)} partitions change, {copied} bytes are copied")


def _ids(nodes: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, nodes))


# --- progress ----------------------------------------------------------------------------------------


def _mover(moves: Sequence[Move]) -> Callable[[Client], Awaitable[None]]:
    """Moves them, some at a time."""

    async def work(client: Client) -> None:
        from postroad.client.metadata import TopicPartition
        from postroad.client.moves import reassign

        with output.progress(len(moves), "partitions moved") as advance:
            for first in range(0, len(moves), AT_ONCE):
                part = {TopicPartition(m.topic, m.index): m.after for m in moves[first : first + AT_ONCE]}
                for where, error in (await reassign(client, part)).items():
                    click.echo(f"{where} was not moved: {error}", err=True)
                await _watch(client, list(part), lambda done, first=first: advance(first + done))
                click.echo(f"{min(first + AT_ONCE, len(moves))} of {len(moves)} partitions moved", err=True)

    return work


def _canceller(dry_run: bool, yes: bool) -> Callable[[Client], Awaitable[None]]:
    """Cancels every move there is."""

    async def work(client: Client) -> None:
        from postroad.client.moves import moving, reassign

        begun = sorted(await moving(client))
        click.echo(f"{len(begun)} partitions are moving")
        if not begun:
            return
        if dry_run:
            click.echo("nothing was changed (--dry-run)", err=True)
            return
        confirm(f"Cancel {len(begun)} moves?", yes)
        refused = await reassign(client, dict.fromkeys(begun))
        left = [where for where in begun if where not in refused]  # the others have ended meanwhile
        with output.progress(len(left), "moves cancelled") as advance:
            await _watch(client, left, advance)
        click.echo(f"cancelled {len(left)} moves")

    return work


async def _watch(
    client: Client, partitions: Sequence[TopicPartition], advance: output.Progress | None = None
) -> None:
    """Wait until none of these is being moved any more."""
    import asyncio

    from postroad.client.moves import moving

    left = len(partitions)
    while left:
        now = await moving(client)
        still = sum(where in now for where in partitions)
        if still != left and still:
            click.echo(f"{still} of {len(partitions)} partitions are still moving", err=True)
        if advance is not None:
            advance(len(partitions) - still)
        left = still
        if left:
            await asyncio.sleep(LOOK_S)


async def _watch_drain(client: Client, node: int) -> None:
    import asyncio

    from postroad.client.moves import nodes

    told = -1
    with output.growing_progress(f"replicas left node {node}") as advance:
        total = 0
        while True:
            standing = _standing(await nodes(client), node)
            left = standing.replicas - standing.stuck
            total = max(total, left)
            advance(total - left, total)
            if left <= 0:
                break
            if standing.replicas != told:
                click.echo(
                    f"node {node} holds {standing.replicas} replicas, {standing.leaves} are moving", err=True
                )
            told = standing.replicas
            await asyncio.sleep(LOOK_S)
    if standing.stuck:
        raise Failed(
            f"{standing.stuck} partitions stay on node {node}: no other node can take them, "
            "or none that runs has their messages"
        )
    click.echo(f"node {node} is empty")
