"""`postroad cluster chaos`: kill and pause nodes of a cluster, and see that nothing is lost.

Messages are numbered and published all the while to a topic of its own, synced to all replicas as any other
with acks=all. Nodes are struck one at a time: the next one only when all replicas are in sync again, so a
cluster that keeps its promises loses nothing. In the end all that was acknowledged must be there, where the
answer said, each message once and in order.

Whoever runs the nodes starts them again: systemd, a container's runtime, or `serve --nodes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from postroad.cli.command import Command
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.duration import DurationType
from postroad.cli.numbers import DecimalNumber
from postroad.cli.session import Failed, bootstrap_option, talk

if TYPE_CHECKING:
    from postroad.cli.chaos_run import ChaosRun
    from postroad.client import Client

PATIENCE_S: Final = 120.0  # for one message: far longer than any fault lasts
SHOWN_MAX: Final = 20


@click.command(cls=Command)
@click.option(
    "--data",
    "directories",
    type=click.Path(path_type=Path, file_okay=False),
    multiple=True,
    required=True,
    help="The data directory of a node on this machine that may be killed and paused; once for each.",
)
@click.option("--minutes", type=DecimalNumber(0.05, 7 * 24 * 60), default=10.0, show_default=True)
@click.option(
    "--pause",
    "pause_ms",
    type=DurationType(),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How long a node is paused; longer than its lease (2s) makes others take over.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Which nodes are struck, in order.")
@yes_option
@bootstrap_option
def chaos(
    directories: Sequence[Path], minutes: float, pause_ms: int, seed: int, yes: bool, bootstrap: str
) -> None:
    """Kill (-9) and pause nodes in turn while messages are published, and check that none is lost.

    Nodes are named by their data directories on this machine. Something else has to start a node again when
    it was killed. Nothing is deleted but the topic postroad-chaos, and that only if all went well. The exit
    code is 1 if a message was lost or doubled, or the cluster did not become whole again.
    """
    from postroad.cli.chaos_run import ChaosRun, pid_of

    for directory in directories:
        pid_of(directory)
    confirm(f"Kill and pause {len(directories)} nodes for {minutes:g} minutes?", yes)

    async def work(client: Client) -> ChaosRun:
        run = ChaosRun(client, directories, pause_ms / 1000, seed)
        await run.play(minutes * 60)
        return run

    _report(talk(bootstrap, PATIENCE_S, work))


def _report(run: ChaosRun) -> None:
    click.echo(
        f"{run.kills} kills, {run.pauses} pauses; {len(run.acknowledged)} messages acknowledged, "
        f"{len(run.failed)} failed; the longest wait was {run.longest_s:.2f} s"
    )
    for finding in run.found[:SHOWN_MAX]:
        click.echo(finding)
    if run.found:
        raise Failed(f"{len(run.found)} promises were broken; the topic postroad-chaos was kept")
    click.echo("nothing was lost or doubled")
