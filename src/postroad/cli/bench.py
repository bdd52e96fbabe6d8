"""`postroad bench`: how fast a cluster is, seen from this machine with Postroad's own client.

A quick look, not a comparison: the client is Python and limits what is measured at high rates. Three
parts: produce as fast as it goes, read it all back, then one message at a time for the latency.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.numbers import COUNT, WholeNumber
from postroad.cli.publish import ACKS
from postroad.cli.session import cluster_options, json_option, talk
from postroad.wire.compression import NAMES

if TYPE_CHECKING:
    from postroad.client import Client

SIZE_MAX: Final = 1_000_000  # topics take about 1 MiB by default


@click.command(cls=Command)
@click.option("-n", "--messages", type=COUNT, default=100_000, show_default=True, help="Number of messages.")
@click.option(
    "-s",
    "--size",
    type=WholeNumber(1, SIZE_MAX),
    default=1000,
    show_default=True,
    help="Size of a message in bytes.",
)
@click.option("-p", "--partitions", type=COUNT, default=1, show_default=True, help="Of the topic.")
@click.option("-z", "--compression", type=click.Choice(NAMES), default="none", show_default=True)
@click.option("--acks", type=click.Choice(["1", "all"]), default="all", show_default=True)
@click.option("--latency-messages", type=COUNT, default=1000, show_default=True, help="Sent one at a time.")
@json_option
@cluster_options
def bench(
    messages: int,
    size: int,
    partitions: int,
    compression: str,
    acks: str,
    latency_messages: int,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Measure produce and consume rates and latency, on a topic that is deleted afterwards."""
    from postroad.cli import measurement

    load = measurement.Load(messages, size, partitions, compression, ACKS[acks], latency_messages)

    async def work(client: Client) -> dict[str, float]:
        from postroad.client import topics

        topic = f"postroad-bench-{uuid.uuid4().hex[:8]}"
        await topics.create(client, topic, partitions=partitions)
        try:
            return {
                **await measurement.produce(client, topic, load),
                **await measurement.consume(client, topic, load),
                **await measurement.latency(client, topic, load),
            }
        finally:
            await topics.delete(client, [topic])

    figures = talk(bootstrap, timeout_s, work)
    if as_json:
        output.write_json({**load._asdict(), **figures})
        return
    output.table(
        ("measured", "value"), [(name.replace("_", " "), round(value, 3)) for name, value in figures.items()]
    )
