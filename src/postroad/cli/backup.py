"""`postroad backup …`"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from postroad.cli import output
from postroad.cli.backup_prune import prune
from postroad.cli.command import Group
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.errors import PostroadError

if TYPE_CHECKING:
    from postroad.backups.create import Made
    from postroad.backups.manifest import Manifest
    from postroad.backups.target import Target
    from postroad.client import Client

T = TypeVar("T")

where_argument = click.argument("where", metavar="WHERE")
name_option = click.option("--backup", "name", metavar="NAME", help="Which one; without it the newest.")


@click.group(cls=Group)
def backup() -> None:
    """Back up a node or a cluster while it runs; verify, restore and prune backups.

    WHERE is a directory, or the URL of an object store (s3://bucket/path, gs://…, az://…), which needs
    the extra `backup` of the package.
    """


@backup.command()
@where_argument
@json_option
@cluster_options
def create(where: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Back up the cluster at --bootstrap to WHERE, which has backups of no other cluster.

    Topics with their configs and messages, consumer groups' offsets, subscriptions and what is done in them,
    open transactions, users, access rules and quotas: all as of one moment. Whatever an earlier backup there
    has stored is not stored again. One that is interrupted is gone on with when the command is given again.

    With security on you need the right ClusterAction, or the master key: postroad --master-key FILE backup …
    """
    target = _opened(where)

    async def work(client: Client) -> Made:
        from postroad.backups.create import Creation

        with output.growing_progress("backing up") as advance:
            return await _backed_up(Creation(client, target, advance).run)

    made = talk(bootstrap, timeout_s, work)
    if as_json:
        output.write_json(
            {**_facts(made.name, made.manifest), "new_bytes": made.new_bytes, "new_parts": made.new_parts}
        )
        return
    click.echo(
        f"backed up {_partitions(made.manifest)} as {made.name}: {made.manifest.bytes} bytes, "
        f"{made.new_bytes} of them new"
    )


@backup.command("list")
@where_argument
@json_option
def list_(where: str, as_json: bool) -> None:
    """List the backups at WHERE, the oldest first."""
    from postroad.backups import verify as verifying

    target = _opened(where)
    found = _done(lambda: [verifying.read_manifest(target, name) for name in verifying.backups(target)])
    columns = ("backup", "cluster", "partitions", "bytes")
    rows = [(name, read.cluster, _count(read), read.bytes) for name, read in found]
    output.listing(columns, rows, as_json, "there is no backup")


@backup.command()
@where_argument
@name_option
@click.option("--all", "all_", is_flag=True, help="All backups that lie there.")
@json_option
def verify(where: str, name: str | None, all_: bool, as_json: bool) -> None:
    """Check a backup where it lies: the hash of each part, and the CRC and the place of each batch.

    What is damaged is named, and the exit code is 1.
    """
    from postroad.backups import verify as verifying

    if all_ and name:
        raise click.UsageError("--all and --backup exclude each other")
    target, seen = _opened(where), set[str]()
    names = _done(lambda: verifying.backups(target)) if all_ else [name]
    if not names:
        raise Failed("there is no backup: `postroad backup create` makes one")
    results = []
    for each in names:
        found, read = _done(partial(verifying.read_manifest, target, each))
        with output.progress(read.bytes, f"verifying {found}") as advance:
            done = _Sum(advance)
            wrong = _done(partial(verifying.verify, target, read, seen, done.add))
        results.append({**_facts(found, read), "damaged": wrong})
        for text in wrong:
            click.echo(f"postroad: {found}: {text}", err=True)
        if not as_json and not wrong:
            click.echo(f"{found} is whole: {_partitions(read)}, {read.bytes} bytes")
    if as_json:
        output.write_json(results)
    if any(result["damaged"] for result in results):
        raise Failed("the backup is damaged: restore an older one, or make a new one elsewhere")


@backup.command()
@where_argument
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The data directory to be: one that no node has used.",
)
@name_option
@click.option(
    "--master-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The cluster's master key, which opens what is sealed; without it master.key in --data.",
)
@click.option("--node-id", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True)
@json_option
def restore(
    where: str, data: Path, name: str | None, master_key_file: Path | None, node_id: int, as_json: bool
) -> None:
    """Restore a backup of WHERE into the data directory of one node, which leads everything.

    Then start it: postroad serve --data DIR. To have a cluster again, import it before that (postroad
    cluster import), start the other nodes and give topics their replicas: postroad cluster rebalance
    --replicas 3.

    A restore that is interrupted is begun anew when the command is given again; until one has finished no
    node starts there.
    """
    from postroad.backups import verify as verifying
    from postroad.backups.restore import Restoring

    target = _opened(where)
    found, read = _done(partial(verifying.read_manifest, target, name))
    master, key_file = _master_key(master_key_file, data)
    with output.progress(read.bytes, f"restoring {found}") as advance:
        done = _Sum(advance)
        restoring = Restoring(target, read, data, node_id, secrets.token_bytes)
        _done(partial(restoring.run, master, done.add))
    if key_file is not None:
        _keep_key(key_file, data)
    if as_json:
        output.write_json(_facts(found, read))
        return
    click.echo(f"restored {found}: {_partitions(read)}; start it with: postroad serve --data {data}")


backup.add_command(prune)


class _Sum:
    """Adds up what is done, for a progress bar."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._sum = 0

    def add(self, done: int) -> None:
        self._sum += done
        self._advance(self._sum)


def _opened(where: str) -> Target:
    from postroad.backups.target import open_target

    return _done(partial(open_target, where))


def _done(work: Callable[[], T]) -> T:
    """What it gives. Failed with the reason if it can't be done."""
    from postroad.backups.errors import BackupError

    try:
        return work()
    except (BackupError, PostroadError) as error:
        raise Failed(str(error)) from None


async def _backed_up(run: Callable[[], object]) -> Made:
    from postroad.backups.errors import BackupError

    try:
        return await run()  # type: ignore[misc,no-any-return]
    except BackupError as error:
        raise Failed(str(error)) from None


def _master_key(file: Path | None, data: Path) -> tuple[bytes | None, Path | None]:
    """The key, and the file that is not in the data directory yet."""
    from postroad.broker.master_key_file import KEY_FILE
    from postroad.security.master_key import read_key

    path = file or data / KEY_FILE
    if file is None and not path.exists():
        return None, None
    try:
        key = read_key(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no master key"
        raise click.BadParameter(f"{path} can't be read: {reason}.", param_hint="--master-key-file") from None
    return key, None if (data / KEY_FILE).exists() else path


def _keep_key(file: Path, data: Path) -> None:
    """Beside the data, where a node looks for it: its users' access keys are made of it."""
    from postroad.broker.master_key_file import KEY_FILE
    from postroad.log.disk import OsDisk

    OsDisk().replace(str(data / KEY_FILE), file.read_bytes())


def _facts(name: str, read: Manifest) -> dict[str, object]:
    return {
        "backup": name,
        "cluster": read.cluster,
        "created_ms": read.created_ms,
        "partitions": _count(read),
        "bytes": read.bytes,
        "sealed": read.sealed,
    }


def _count(read: Manifest) -> int:
    return sum(not log.is_ledger for log in read.logs)


def _partitions(read: Manifest) -> str:
    count = _count(read)
    return f"{count} partition{'' if count == 1 else 's'}"
