"""`postroad cluster import`: a single node, or all nodes of `serve --nodes`, take their state into etcd.

The messages stay where they are. What is kept beside them (topics, configs, partition states, ids, users) is
copied from the data directory to the cluster's store while all its nodes are stopped:

1. copy the keys, the one that makes it a cluster last (`cluster.importing`);
2. note in each node.json how far the new store is, so that no older one is taken for it;
3. rename the old store: without --store a node refuses to start, and does not go on beside its cluster.

Whatever ends it early, the command can be given again and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from postroad.cli.command import Command
from postroad.cli.session import Failed
from postroad.errors import PostroadError, StoreUnavailable

if TYPE_CHECKING:
    from postroad.broker.data_directory import DataDirectory
    from postroad.cluster.store import Store

Imported: TypeAlias = tuple[int, dict[Path, str]]
"""How many keys were copied; each node's directory, and what else its node is started with."""


@click.command("import", cls=Command)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The data directory of the node, or of `serve --nodes`, which is stopped.",
)
@click.option(
    "--store",
    "address",
    required=True,
    metavar="URL",
    help="The cluster's coordination store, which is empty: etcd://HOST:PORT[,…]/PATH.",
)
def import_node(data: Path, address: str) -> None:
    """Take the topics, configs and groups of a single node, or of `serve --nodes`, into etcd.

    A single node: stop it, import it, and start it with the same --data and with --store. Then start the
    other nodes, and let partitions have replicas there: cluster rebalance --replicas 3.

    The nodes of `serve --nodes`: stop them, import their directory, and start each by itself with its own
    directory in there, its id, and --store. A node's directory may be moved to another machine before that.
    """
    from postroad.broker.data_directory import CLUSTER_FILE
    from postroad.cluster import store_address

    try:
        store_address.parse(address)
    except ValueError as error:
        raise click.BadParameter(f"expected {error}", param_hint="--store") from None
    is_cluster = (data / CLUSTER_FILE).is_file()
    if not is_cluster and not (data / "logs").is_dir():
        raise Failed(f"{data} is no data directory of a node: name one with --data")
    try:
        copied, nodes = _import_nodes(data, address) if is_cluster else _import_one(data, address)
    except StoreUnavailable as error:
        raise Failed(f"{error} The import is not complete; give the same command again.") from None
    except PostroadError as error:
        raise Failed(str(error)) from None
    click.echo(f"imported {copied} keys; start")
    for directory, more in nodes.items():
        click.echo(f"  postroad serve --data {directory} --store {address}{more}")


def _import_one(data: Path, address: str) -> Imported:
    """A node's own directory."""
    import asyncio

    from postroad.broker.data_directory import DataDirectory
    from postroad.log.disk import OsDisk

    directory = DataDirectory(data, OsDisk())
    with _opened([directory]):
        _check_store(directory.store)
        return asyncio.run(_import(directory.store, address, [directory])), {data: ""}


def _import_nodes(data: Path, address: str) -> Imported:
    """The directory of several nodes, each of which has one in there."""
    import asyncio

    from postroad.broker.cluster_directory import ClusterDirectory
    from postroad.broker.data_directory import DataDirectory
    from postroad.log.disk import OsDisk

    cluster = ClusterDirectory(data, OsDisk())
    cluster.open(cluster.size())
    try:
        numbers = [number for number in range(1, cluster.size() + 1) if cluster.node(number).is_dir()]
        directories = [DataDirectory(cluster.node(number), OsDisk()) for number in numbers]
        with _opened(directories):
            _check_store(cluster.store)
            copied = asyncio.run(_import(cluster.store, address, directories))
    finally:
        cluster.close()
    return copied, {cluster.node(number): f" --set node.id={number} --kafka HOST:PORT" for number in numbers}


def _check_store(file: Path) -> None:
    if not file.exists():
        raise Failed(f"{file.parent} has no coordination store: it is a cluster's, or was imported before")


@contextmanager
def _opened(directories: Sequence[DataDirectory]) -> Iterator[None]:
    """No node can use them meanwhile."""
    with ExitStack() as stack:
        for directory in directories:
            directory.open()
            stack.callback(directory.close, clean=False)
        yield


async def _import(file: Path, address: str, directories: Sequence[DataDirectory]) -> int:
    """Copy the store, then let go of the old one. Returns how many keys were copied."""
    from postroad.broker.data_directory import retire_store
    from postroad.broker.runtime import SystemRuntime
    from postroad.cluster.sqlite import SqliteStore
    from postroad.log.disk import OsDisk

    source = await SqliteStore.open(file)
    try:
        target = await SystemRuntime().open_store(file, address)
        try:
            copied, revision = await _copy(source, target)
        finally:
            await target.close()
    finally:
        await source.close()
    for directory in directories:
        directory.note_new_store(revision)
    retire_store(OsDisk(), file)
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
