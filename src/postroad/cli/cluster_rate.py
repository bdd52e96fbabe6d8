"""`postroad cluster rate`: how fast nodes copy what they lack, changed while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from postroad.cli import output
from postroad.cli.cluster_moves import NODE_ID
from postroad.cli.command import Command
from postroad.cli.session import cluster_options, json_option, talk

if TYPE_CHECKING:
    from postroad.client import Client

COPY_RATE: Final = "follower.replication.throttled.rate"  # its name in Kafka's tools
COLUMNS: Final = ("node", "bytes a second", "set")
SET: Final = {2: "for this node", 3: "for all nodes", 4: "by its settings", 5: "by default"}


@click.command(cls=Command)
@click.argument("limit", required=False, metavar="[BYTES]")
@click.option("--node", type=NODE_ID, help="Of this node only; it comes before what is set for all.")
@click.option("--reset", is_flag=True, help="Take back what was set; settings of nodes hold again.")
@json_option
@cluster_options
def rate(
    limit: str | None, node: int | None, reset: bool, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Show or set how many bytes a second a node copies of all logs in which it is not in sync.

    That is what moves and returning nodes cost. A change holds at once, also for moves that are under way;
    0 is no limit. Kafka's tools know it as follower.replication.throttled.rate.

    \b
    postroad cluster rate 50MiB
    postroad cluster rate 10MiB --node 3
    postroad cluster rate --reset
    """
    if reset and limit is not None:
        raise click.UsageError("give a limit, or --reset")
    changes = {} if limit is None else {COPY_RATE: str(_bytes(limit))}

    async def work(client: Client) -> list[tuple[output.Cell, ...]]:
        from postroad.client.topics import NODE, alter_config, describe_config

        if changes or reset:
            name = "" if node is None else str(node)
            await alter_config(client, name, changes, [COPY_RATE] if reset else [], resource=NODE)
        rows: list[tuple[output.Cell, ...]] = []
        for each in await client.nodes():
            found = {entry.name: entry for entry in await describe_config(client, str(each), resource=NODE)}
            entry = found[COPY_RATE]
            rows.append((each, int(entry.value or 0) or "no limit", SET[entry.source]))
        return rows

    output.listing(COLUMNS, talk(bootstrap, timeout_s, work), as_json, "no node runs")


def _bytes(text: str) -> int:
    from postroad.config.values import size

    try:
        return int(size(0).read(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: expected {error}", param_hint="BYTES") from None
