"""`postroad log …`: looks at the files of a node that is stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.ending import FAILED
from postroad.cli.log_compare import compare
from postroad.cli.numbers import COUNT, OFFSET
from postroad.cli.session import Failed, json_option

if TYPE_CHECKING:
    from postroad.cli.offline import StoredPartition
    from postroad.log.inspect import Batch

FINDING_COLUMNS: Final = ("topic", "partition", "file", "byte", "finding", "harmless")
BATCH_COLUMNS: Final = (
    "segment",
    "byte",
    "base offset",
    "last offset",
    "records",
    "bytes",
    "max timestamp",
    "compression",
    "epoch",
    "producer",
    "sequence",
)

F = TypeVar("F", bound=Callable[..., Any])


def data_option(command: F) -> F:
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("postroad-data"),
        envvar="POSTROAD_DATA_DIR",
        show_default=True,
        show_envvar=True,
        help="The data directory; its node must be stopped.",
    )(command)


@click.group(cls=Group)
def log() -> None:
    """Verify, dump or compare the log files of stopped nodes."""


log.add_command(compare)


@log.command()
@click.argument("topic_partitions", nargs=-1, metavar="[TOPIC[/PARTITION]]...")
@data_option
@json_option
@click.pass_context
def verify(context: click.Context, topic_partitions: Sequence[str], data: Path, as_json: bool) -> None:
    """Check every batch, index and checkpoint, by default of all topics and their ledgers.

    The exit code is 1 if a message is damaged. Harmless findings (a torn tail after a crash, a stale index)
    are repaired when the node starts.
    """
    from postroad.cli.offline import stored_partitions

    with stored_partitions(data) as stored:
        chosen = _chosen(stored, topic_partitions)
        rows = _verify(chosen)
    if as_json:
        count = sum(not stored.is_ledger for stored in chosen)
        output.write_json({"partitions": count, "findings": output.objects(FINDING_COLUMNS, rows)})
    else:
        _report(chosen, rows)
    if not all(row[-1] for row in rows):
        context.exit(FAILED)


@log.command()
@click.argument("topic_partition", metavar="TOPIC[/PARTITION]")
@click.option("--from", "offset", type=OFFSET, default=0, help="Start at the batch with this offset.")
@click.option(
    "-n",
    "--count",
    type=COUNT,
    default=1000,
    show_default=True,
    help="Print at most this many batches.",
)
@click.option("--records", is_flag=True, help="Print the records themselves, as lines of JSON.")
@click.option("--ledger", is_flag=True, help="Print the ledgers: what subscriptions are done with.")
@data_option
@json_option
def dump(
    topic_partition: str, offset: int, count: int, records: bool, ledger: bool, data: Path, as_json: bool
) -> None:
    """Print a topic's batches as they are stored, one per line."""
    from postroad.cli.offline import choose, stored_partitions
    from postroad.errors import CorruptMessage

    with stored_partitions(data) as stored:
        found = [each for each in choose(stored, topic_partition) if each.is_ledger == ledger]
        if not found:
            raise Failed(f"no subscription has ever begun with {topic_partition}: there is no ledger")
        for chosen in found:
            try:
                _dump(chosen, offset, count, records, as_json)
            except CorruptMessage as error:
                raise Failed(
                    f"{chosen.topic}/{chosen.partition}: {error} See `postroad log verify`."
                ) from None


def _chosen(stored: list[StoredPartition], topic_partitions: Sequence[str]) -> list[StoredPartition]:
    from postroad.cli.offline import choose

    if not topic_partitions:
        return stored
    return sorted(
        {found for topic_partition in topic_partitions for found in choose(stored, topic_partition)}
    )


def _verify(partitions: Sequence[StoredPartition]) -> list[tuple[output.Cell, ...]]:
    from postroad.log.disk import OsDisk
    from postroad.log.inspect import verify_directory

    rows: list[tuple[output.Cell, ...]] = []
    done = 0
    with output.progress(sum(stored.bytes for stored in partitions), "verify") as advance:
        for stored in partitions:
            within = "ledger/" if stored.is_ledger else ""
            found = verify_directory(OsDisk(), stored.path)
            named = (finding._replace(file=within + finding.file) for finding in found)
            rows.extend((stored.topic, stored.partition, *finding) for finding in named)
            done += stored.bytes
            advance(done)
    return rows


def _report(partitions: Sequence[StoredPartition], rows: Sequence[Sequence[output.Cell]]) -> None:
    if rows:
        output.table(FINDING_COLUMNS, rows)
    size = sum(stored.bytes for stored in partitions)
    damaged = sum(not row[-1] for row in rows)
    verdict = f"{damaged} damaged" if damaged else "no message is damaged"
    count = sum(not stored.is_ledger for stored in partitions)
    noun = "partition" if count == 1 else "partitions"
    click.echo(f"{count} {noun}, {size:,} bytes: {verdict}", err=True)


def _dump(stored: StoredPartition, offset: int, count: int, records: bool, as_json: bool) -> None:
    from itertools import islice

    from postroad.log.disk import OsDisk
    from postroad.log.inspect import iterate_batches

    batches = islice(iterate_batches(OsDisk(), stored.path, offset), count)
    if records:
        for batch in batches:
            _write_records(stored, batch, offset)
        return
    rows = [_row(batch) for batch in batches]
    if as_json:
        topic_partition = {"topic": stored.topic, "partition": stored.partition}
        output.write_json({**topic_partition, "batches": output.objects(BATCH_COLUMNS, rows)})
    else:
        click.echo(f"{stored.topic}/{stored.partition}  {stored.path}")
        output.table(BATCH_COLUMNS, rows)


def _write_records(stored: StoredPartition, batch: Batch, offset: int) -> None:
    from postroad.cli.record_json import to_json
    from postroad.wire.records import decode_records

    for record in decode_records(batch.content):
        if record.offset >= offset:
            click.echo(to_json(stored.topic, stored.partition, record))


def _row(batch: Batch) -> tuple[output.Cell, ...]:
    from postroad.wire.compression import NAMES

    header = batch.header
    has_producer = header.producer_id >= 0
    return (
        batch.segment,
        batch.position,
        header.base_offset,
        header.last_offset,
        header.count,
        header.size,
        header.max_timestamp,
        NAMES[header.compression] if header.compression < len(NAMES) else str(header.compression),
        header.leader_epoch,
        header.producer_id if has_producer else None,
        header.base_sequence if has_producer else None,
    )
