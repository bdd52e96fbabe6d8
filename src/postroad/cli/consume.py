"""`postroad consume`: messages of topics as lines of text or JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from postroad.cli import output
from postroad.cli.command import RAW, Command, as_bytes
from postroad.cli.numbers import COUNT, PARTITION
from postroad.cli.session import cluster_options, talk
from postroad.cli.start import BEGINNING, Start, StartType, resolve
from postroad.cli.topic import known

if TYPE_CHECKING:
    from postroad.client import Client, Consumer, TopicPartition
    from postroad.wire.records import Record

POLL_S: Final = 0.5


class Format(NamedTuple):
    """How a message becomes a line."""

    as_json: bool
    keys: bool
    headers: bool
    separator: bytes
    raw: bool

    def line(self, topic_partition: TopicPartition, record: Record) -> bytes:
        if self.raw:
            return record.value or b""
        if self.as_json:
            from postroad.cli.record_json import to_json

            return to_json(*topic_partition, record) + b"\n"
        parts = []
        if self.headers:
            named = (f"{name}={(value or b'').decode(errors='replace')}" for name, value in record.headers)
            parts.append(",".join(named).encode(errors="replace"))
        if self.keys:
            parts.append(record.key or b"")
        parts.append(record.value or b"")
        return self.separator.join(parts) + b"\n"


@click.command(cls=Command)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--from",
    "start",
    type=StartType(),
    metavar="START",
    help="Start at: beginning (default), end, an offset, -N (the last N of a partition), 15m (ago), a date.",
)
@click.option("--from-beginning", is_flag=True, help="Same as --from beginning.")
@click.option("-f", "--follow", is_flag=True, help="Keep printing new messages until Ctrl-C.")
@click.option("-n", "--count", type=COUNT, help="Stop after this many messages.")
@click.option(
    "-p",
    "--partition",
    "partitions",
    multiple=True,
    type=PARTITION,
    help="Read only this partition. May be repeated.",
)
@click.option("-g", "--group", help="Read as a member of this group, from its committed offsets, and commit.")
@click.option(
    "--committed", is_flag=True, help="Leave out messages of transactions that are open or were aborted."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print each message as a line of JSON with all its fields."
)
@click.option(
    "--raw",
    is_flag=True,
    help="Print values byte for byte, with nothing between them, as `publish --file` took them.",
)
@click.option("--keys", is_flag=True, help="Print keys before values.")
@click.option("--headers", is_flag=True, help="Print headers before keys and values.")
@click.option(
    "--separator",
    type=RAW,
    default="\t",
    metavar="TEXT",
    help="Text between headers, key and value; a tab by default.",
)
@cluster_options
def consume(
    topics: Sequence[str],
    start: Start | None,
    from_beginning: bool,
    follow: bool,
    count: int | None,
    partitions: Sequence[int],
    group: str | None,
    committed: bool,
    as_json: bool,
    raw: bool,
    keys: bool,
    headers: bool,
    separator: str,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Print the messages of topics, up to their current end.

    \b
    postroad consume orders
    postroad consume orders --from 15m --json | jq .value
    postroad consume orders --group billing --follow
    postroad consume pictures --raw --count 1 > cat.jpg
    """
    if raw and (as_json or keys or headers):
        raise click.UsageError("--raw writes values only: leave out --json, --keys and --headers")
    if group is not None and (start is not None or partitions or from_beginning):
        raise click.UsageError(
            "a group has positions and partitions of its own: leave out --from and --partition, "
            "or move the group with `postroad group reset`"
        )
    format_ = Format(as_json, keys, headers, as_bytes(separator), raw)

    async def work(client: Client) -> None:
        from postroad.client import EARLIEST, Consumer
        from postroad.client.offsets import READ_COMMITTED, READ_UNCOMMITTED

        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        for topic in topics:
            await known(client, topic)
        async with Consumer(client, group=group, reset=EARLIEST, isolation=isolation) as consumer:
            if group is not None:
                await consumer.subscribe(topics)
            else:
                topic_partitions = await _topic_partitions(client, topics, partitions)
                await consumer.assign(await resolve(client, topic_partitions, start or BEGINNING))
            await _write(client, consumer, format_, follow, count, isolation)

    talk(bootstrap, timeout_s, work)


async def _topic_partitions(
    client: Client, topics: Sequence[str], partitions: Sequence[int]
) -> list[TopicPartition]:
    from postroad.client import TopicPartition

    topic_partitions: list[TopicPartition] = []
    for name in topics:
        topic = await client.topic(name)
        for number in partitions or range(len(topic.partitions)):
            topic.leader(number)  # raises if there is no such partition
            topic_partitions.append(TopicPartition(name, number))
    return topic_partitions


async def _write(
    client: Client, consumer: Consumer, format_: Format, follow: bool, count: int | None, isolation: int
) -> None:
    """Until the end (of what is there when a partition is first read), the count, or Ctrl-C."""
    from postroad.client import offsets

    left = count
    waits = output.Waits()
    ends: dict[TopicPartition, int] = {}
    while True:
        if not follow and ends.keys() != consumer.positions.keys():
            ends = await offsets.latest(client, list(consumer.positions), isolation)
        if ends and all(
            consumer.positions.get(topic_partition, end) >= end for topic_partition, end in ends.items()
        ):
            return
        fetched = await consumer.poll(POLL_S)
        if follow and not fetched:
            waits.tell()
        for topic_partition, records, _ in fetched:
            wanted = records if left is None else records[:left]
            sys.stdout.buffer.write(b"".join(format_.line(topic_partition, record) for record in wanted))
            if left is not None:
                left -= len(wanted)
            if len(wanted) < len(records):
                consumer.rewind(topic_partition, records[len(wanted)].offset)
        sys.stdout.buffer.flush()
        if left == 0:
            return
        if not follow and not consumer.positions:
            click.echo("other members of the group have all partitions", err=True)
            return
