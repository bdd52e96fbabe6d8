"""`postroad cluster import`: a single node becomes the first one of a cluster.

The messages stay where they are. What the node keeps beside them (topics, configs, partition states, ids) is
copied from its data directory to the cluster's store while the node is stopped:

1. copy the keys, the one that makes it a cluster last (`cluster.importing`);
2. note in node.json how far the new store is, so that no older one is taken for it;
3. rename the old store: without --store the node refuses to start, and does not go on beside its cluster.

Whatever ends it early, the command can be given again and goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from postroad.cli.command import Command
from postroad.cli.session import Failed
from postroad.errors import PostroadError, StoreUnavailable

if TYPE_CHECKING:
    from postroad.broker.data_directory import DataDirectory
    from postroad.cluster.store import Store


@click.command("import", cls=Command)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The data directory of the node, which is stopped.",
)
@click.option(
    "--store",
    "address",
    required=True,
    metavar="URL",
    help="The cluster's coordination store, which is empty: etcd://HOST:PORT[,…]/PATH.",
)
def import_node(data: Path, address: str) -> None:
    """Take a single node's topics, configs and groups into etcd, so that other nodes can join it.

    Stop the node, import it, and start it with the same --data and with --store. Then start the other nodes,
    and let partitions have replicas there: cluster rebalance --replicas 3.
    """
    import asyncio

    from postroad.broker.data_directory import DataDirectory
    from postroad.cluster import store_address
    from postroad.log.disk import OsDisk

    try:
        store_address.parse(address)
    except ValueError as error:
        raise click.BadParameter(f"expected {error}", param_hint="--store") from None
    directory = DataDirectory(data, OsDisk())
    if not directory.logs.is_dir():
        raise Failed(f"{data} is no data directory of a node: name one with --data")
    try:
        directory.open()
        try:
            copied = asyncio.run(_import(directory, address))
        finally:
            directory.close(clean=False)
    except StoreUnavailable as error:
        raise Failed(f"{error} The import is not complete; give the same command again.") from None
    except PostroadError as error:
        raise Failed(str(error)) from None
    click.echo(f"imported {copied} keys; start the node with --data {data} --store {address}")


async def _import(directory: DataDirectory, address: str) -> int:
    """Copy the store, then let go of the old one. Returns how many keys were copied."""
    from postroad.broker.runtime import SystemRuntime
    from postroad.cluster.sqlite import SqliteStore

    if not directory.store.exists():
        raise Failed(f"{directory.path} has no coordination store: it is a cluster's, or was imported before")
    source = await SqliteStore.open(directory.store)
    try:
        target = await SystemRuntime().open_store(directory.store, address)
        try:
            copied, revision = await _copy(source, target)
        finally:
            await target.close()
    finally:
        await source.close()
    directory.note_new_store(revision)
    directory.retire_store()
    return copied


async def _copy(source: Store, target: Store) -> tuple[int, int]:
    """Returns how many keys were copied, and the target's revision then."""
    from postroad.cluster.importing import plan

    snapshot, copied = await source.list(""), 0
    for compares, operations in plan(snapshot, await target.list("")):
        if await target.commit(compares, operations) is None:
            raise Failed(
                "somebody else writes to the target store; stop the nodes that use it, and try again"
            )
        copied += len(operations)
    return copied, (await target.list("")).revision
