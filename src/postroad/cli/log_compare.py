"""`postroad log compare`: whether the replicas of stopped nodes hold the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.ending import FAILED
from postroad.cli.session import json_option

if TYPE_CHECKING:
    from postroad.cli.offline import StoredPartition
    from postroad.log.comparison import Comparison

COLUMNS: Final = ("topic", "partition", "log", "replicas", "from", "up to", "equal", "finding")


class Replicated(NamedTuple):
    """A log that lies in several of the directories."""

    topic: str
    partition: int
    is_ledger: bool
    paths: tuple[str, ...]


@click.command(cls=Command)
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    metavar="DIR...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@json_option
@click.pass_context
def compare(context: click.Context, directories: Sequence[Path], as_json: bool) -> None:
    """Compare the replicas in the data directories of stopped nodes, byte by byte.

    A directory of `postroad serve --nodes` stands for those of all its nodes. Messages and ledgers are
    compared where all replicas have them: above what retention or compaction has changed, up to the lowest
    end. The exit code is 1 if committed bytes differ or are damaged.
    """
    from postroad.cli.offline import stored_partitions

    nodes = [node for directory in directories for node in _nodes(directory)]
    if len(nodes) < 2:
        raise click.UsageError("there is nothing to compare: name the data directories of two nodes or more")
    with ExitStack() as stack:
        stored = [each for node in nodes for each in stack.enter_context(stored_partitions(node))]
        rows = [_row(replicated) for replicated in _replicated(stored)]
    different = sum(not row[COLUMNS.index("equal")] for row in rows)
    if as_json:
        output.write_json({"nodes": len(nodes), "logs": output.objects(COLUMNS, rows)})
    else:
        if rows:
            output.table(COLUMNS, rows)
        verdict = f"{different} differ" if different else "no committed byte differs"
        click.echo(f"{len(nodes)} nodes, {len(rows)} logs with several replicas: {verdict}", err=True)
    if different:
        context.exit(FAILED)


def _nodes(directory: Path) -> list[Path]:
    """The directory itself, or those of the nodes that lie in it."""
    found = sorted(path for path in directory.glob("node-*") if (path / "logs").is_dir())
    return found or [directory]


def _replicated(stored: Sequence[StoredPartition]) -> Iterator[Replicated]:
    """The logs that several nodes have, by topic and partition, ledgers behind their messages."""
    replicas: dict[tuple[str, bool], list[StoredPartition]] = {}
    for each in stored:
        path = Path(each.path)
        name = path.parent.name if each.is_ledger else path.name  # the topic's id and the partition
        replicas.setdefault((name, each.is_ledger), []).append(each)
    for found in sorted(replicas.values(), key=lambda same: same[0][:3]):
        if len(found) > 1:
            topic, partition, is_ledger = found[0][:3]
            yield Replicated(topic, partition, is_ledger, tuple(each.path for each in found))


def _row(replicated: Replicated) -> tuple[output.Cell, ...]:
    from postroad.errors import CorruptMessage
    from postroad.log.comparison import compare_directories
    from postroad.log.disk import OsDisk

    head = (replicated.topic, replicated.partition, "ledger" if replicated.is_ledger else "messages")
    count = len(replicated.paths)
    try:
        found = compare_directories(OsDisk(), replicated.paths)
    except CorruptMessage as error:
        return (*head, count, None, None, False, f"damaged: {error} See `postroad log verify`.")
    return (*head, count, found.start, found.end, found.is_equal, _finding(found))


def _finding(found: Comparison) -> str:
    if found.different is None:
        lag = max(found.ends) - found.end
        return f"one replica lacks the last {lag} offsets" if lag else ""
    if found.is_equal:
        return f"offset {found.different} differs, above the watermark {found.watermark}: not committed"
    return f"offset {found.different} differs"
