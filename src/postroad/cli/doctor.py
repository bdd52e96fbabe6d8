"""`postroad doctor`: looks at a cluster from where it runs, and says what to do about what is wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from postroad import __version__
from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.diagnosis import EtcdSeen, Finding, NodeSeen, Seen, diagnose
from postroad.cli.ending import FAILED
from postroad.cli.session import cluster_options, json_option, talk

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.metadata import Cluster
    from postroad.cluster.store_address import EtcdAddress

ETCD_S: Final = 3.0
NODE_S: Final = 10.0
DAY_S: Final = 86_400


@click.command(cls=Command)
@click.option(
    "--store",
    metavar="URL",
    help="Look at the members of the coordination store, too: etcd://HOST:PORT[,…]/PATH, as for serve.",
)
@click.option(
    "--certificate",
    "certificates",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Look at this certificate here, too; may be repeated.",
)
@json_option
@cluster_options
@click.pass_context
def doctor(
    context: click.Context,
    store: str | None,
    certificates: Sequence[Path],
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Check a node or a cluster: clocks, disks, file limits, versions, certificates, partitions, etcd.

    One line for each thing that was looked at. What is wrong has its remedy behind it, and the exit code is
    1. With security on you need the right Describe on the cluster.

    \b
    postroad doctor
    postroad doctor --json --store etcd://10.0.0.1:2379/postroad
    """
    address = _store_address(store)
    days = [(str(path), _days_left(path)) for path in certificates]
    seen = talk(bootstrap, timeout_s, _look)
    seen.etcd, seen.certificates = _members(address), days
    findings = diagnose(seen)
    _tell(findings, as_json)
    if not all(finding.ok for finding in findings):
        context.exit(FAILED)


def _tell(findings: Sequence[Finding], as_json: bool) -> None:
    if as_json:
        output.write_json([finding._asdict() for finding in findings])
        return
    for check, ok, text, remedy in findings:
        click.echo(f"{'ok   ' if ok else 'WRONG'}  {check}: {text}{f' → {remedy}' if remedy else ''}")


async def _look(client: Client) -> Seen:
    """All nodes that the cluster knows, and its partitions."""
    from postroad.client.nodes import describe

    known = await describe(client)
    nodes = [await _node(client, facts.id, str(facts.address)) for facts in known]
    cluster = await client.retry(client.cluster)
    held = {node for partition in _partitions(cluster).values() for node in partition[1]}
    return Seen(
        version=__version__,
        nodes=nodes,
        gone=sorted(held - {facts.id for facts in known}),
        leaderless=[name for name, (led, _, _) in _partitions(cluster).items() if not led],
        under_replicated=[
            name
            for name, (led, replicas, isr) in _partitions(cluster).items()
            if led and set(isr) < set(replicas)
        ],
    )


def _partitions(cluster: Cluster) -> dict[str, tuple[bool, Sequence[int], Sequence[int]]]:
    """By name: whether it is led, its replicas, and those that are in sync."""
    return {
        f"{name}/{each.number}": (each.leader in cluster.nodes, each.replicas, each.isr)
        for name, topic in sorted(cluster.topics.items())
        for each in topic.partitions
    }


async def _node(client: Client, node: int, address: str) -> NodeSeen:
    from postroad.client.nodes import metrics
    from postroad.errors import PostroadError

    try:
        await metrics(client, node, NODE_S)  # connects, so that the second one tells the time
        asked = time.time()
        page = await metrics(client, node, NODE_S)
    except PostroadError as error:
        return NodeSeen(node, address, error=str(error) or type(error).__name__)
    return NodeSeen(node, address, page, asked_s=asked, answered_s=time.time())


def _days_left(path: Path) -> float:
    import ssl

    from postroad.system.certificate_times import valid_until

    try:
        return (valid_until(ssl.PEM_cert_to_DER_cert(path.read_text())) - time.time()) / DAY_S
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no certificate in PEM"
        raise click.BadParameter(f"{path} can't be read: {reason}.", param_hint="--certificate") from None


# --- the coordination store


def _store_address(text: str | None) -> EtcdAddress | None:
    from postroad.cluster.store_address import EtcdAddress, parse

    if text is None:
        return None
    try:
        found = parse(text)
    except ValueError as error:
        raise click.BadParameter(f"expected {error}", param_hint="--store") from None
    if not isinstance(found, EtcdAddress):
        raise click.BadParameter("only etcd has members to look at", param_hint="--store")
    return found


def _members(address: EtcdAddress | None) -> list[EtcdSeen]:
    if address is None:
        return []
    import asyncio

    return asyncio.run(_ask_members(address))


async def _ask_members(address: EtcdAddress) -> list[EtcdSeen]:
    import ssl

    import aiohttp

    from postroad.system.certificates import ClientFiles, client_context

    tls: bool | ssl.SSLContext = True
    if address.tls is not None:
        ca, certificate, key = (Path(file) if file else None for file in address.tls)
        tls = client_context(ClientFiles(ca, certificate, key))
    scheme = "http" if address.tls is None else "https"
    timeout = aiohttp.ClientTimeout(total=ETCD_S)
    connector = aiohttp.TCPConnector(ssl=tls)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        return [await _ask_member(session, scheme, endpoint) for endpoint in address.endpoints]


async def _ask_member(session: object, scheme: str, endpoint: str) -> EtcdSeen:
    import aiohttp

    assert isinstance(session, aiohttp.ClientSession)
    try:
        async with session.get(f"{scheme}://{endpoint}/version") as answer:
            version = str((await answer.json(content_type=None)).get("etcdserver", ""))
        async with session.get(f"{scheme}://{endpoint}/health") as answer:
            health = str((await answer.json(content_type=None)).get("health", ""))
    except (aiohttp.ClientError, TimeoutError, ValueError, AttributeError, OSError) as error:
        return EtcdSeen(endpoint, error=str(error) or "no answer in time")
    return EtcdSeen(endpoint, version, health == "true")
