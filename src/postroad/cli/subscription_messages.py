"""`postroad subscription peek` and `consume`: the messages of a subscription."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.duration import DurationType
from postroad.cli.numbers import COUNT, OFFSET, PARTITION
from postroad.cli.session import Failed, cluster_options, json_option
from postroad.cli.subscription_talk import chosen, held_topics, places_option, talk_about

if TYPE_CHECKING:
    from postroad.client import Client, ShareConsumer, ShareMessage
    from postroad.client.browse import Peeked

PEEK_COLUMNS: Final = (
    "topic", "partition", "offset", "state", "available at", "held by", "until", "deliveries", "key", "value",
)  # fmt: skip
LIMIT: Final = 20
POLL_MS: Final = 500
WAIT_MS_MAX: Final = 86_400_000  # a day; the protocol's field holds 24
RECORDS_MAX: Final = 500
ACKS: Final = ("accept", "release", "reject")
REASON_MAX: Final = 1000  # characters, as nodes take them


@click.command(cls=Command)
@click.argument("name")
@places_option
@click.option("-p", "--partition", "partitions", multiple=True, type=PARTITION, help="Only this partition.")
@click.option("--from", "first", type=OFFSET, metavar="OFFSET", help="Start at this offset.")
@click.option("-n", "--limit", type=COUNT, default=LIMIT, show_default=True, help="Show at most this many.")
@json_option
@cluster_options
def peek(
    name: str,
    wanted: Sequence[str],
    partitions: Sequence[int],
    first: int | None,
    limit: int,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Show messages that are not acknowledged yet, and their state, without changing anything.

    \b
    available  ready for the next consumer
    delayed    not due yet: published with a delay, or waiting after a failed delivery
    held       locked by a consumer until a time
    waiting    behind other messages, where messages have an order
    settling   accepted, released or rejected; being written to disk
    dying      given up; on its way to the dead letters
    """

    async def work(client: Client) -> list[Peeked]:
        from postroad.client.browse import look

        topic_partitions = await chosen(client, name, wanted)
        if partitions:
            topic_partitions = [
                topic_partition
                for topic_partition in topic_partitions
                if topic_partition.partition in partitions
            ]
        if not topic_partitions:
            raise Failed(f"subscription {name} has no partition {', '.join(map(str, partitions))}")
        starts = {} if first is None else dict.fromkeys(topic_partitions, first)
        found, _ = await look(client, name, topic_partitions, starts, limit)
        return found

    from postroad.cli import peeking

    found = talk_about(name, bootstrap, timeout_s, work)
    if as_json:
        output.write_json([peeking.as_object(message) for message in found])
    elif found:
        output.table(PEEK_COLUMNS, [peeking.as_row(message) for message in found])
    else:
        click.echo("no messages are left", err=True)


@click.command(cls=Command)
@click.argument("name")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    help="Only this topic; by default all of the subscription.",
)
@click.option("-n", "--max", "limit", type=COUNT, help="Stop after this many messages.")
@click.option("--ack", type=click.Choice(ACKS), default="accept", show_default=True)
@click.option("--reason", metavar="TEXT", default="", help="With --ack reject: why, for the dead letters.")
@click.option("-f", "--follow", is_flag=True, help="Keep receiving until Ctrl-C.")
@click.option(
    "--wait",
    "wait_ms",
    type=DurationType(WAIT_MS_MAX),
    default="1s",
    show_default=True,
    metavar="DURATION",
    help="Without --follow: stop when no message arrived for this long.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print each message as a line of JSON with all its fields."
)
@cluster_options
def consume(
    name: str,
    topics: Sequence[str],
    limit: int | None,
    ack: str,
    reason: str,
    follow: bool,
    wait_ms: int,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Receive messages as a consumer of the subscription and print them, to try things out.

    Each is settled after it was printed, as --ack says. With --ack release all are delivered again when the
    command has ended.

    \b
    postroad subscription consume workers --max 10
    postroad subscription consume workers --ack reject --reason "no such customer" --max 1
    """

    if reason and ack != "reject":
        raise click.BadParameter("only with --ack reject", param_hint="--reason")
    if len(reason) > REASON_MAX:
        raise click.BadParameter(f"at most {REASON_MAX} characters", param_hint="--reason")

    async def work(client: Client) -> None:
        from postroad.client import ShareConsumer

        names = list(topics) or await held_topics(client, name)
        if not names:
            raise Failed(f"subscription {name} has no topics yet: name them with --topic")
        await _tell_missing(client, names, follow)
        async with ShareConsumer(client, name, names) as consumer:
            await _consume(consumer, limit, ack, reason, None if follow else wait_ms, as_json)

    talk_about(name, bootstrap, timeout_s, work)


async def _tell_missing(client: Client, names: Sequence[str], follow: bool) -> None:
    """Warn about topics that don't exist; messages of the others are delivered all the same."""
    existing = (await client.retry(lambda: client.cluster(names))).topics
    missing = [name for name in names if name not in existing]
    if len(missing) == len(names) and not follow:
        raise Failed(f"there is nothing to consume: topic {', '.join(missing)} does not exist")
    for name in missing:
        click.echo(f"topic {name} does not exist yet; its messages come when it does", err=True)


async def _consume(
    consumer: ShareConsumer, limit: int | None, ack: str, reason: str, wait_ms: int | None, as_json: bool
) -> None:
    """What is to be released is kept until the end: it would come again at once."""
    from postroad.client import AckType

    released: list[ShareMessage] = []
    waits = output.Waits()
    left = limit
    while left is None or left:
        wanted = RECORDS_MAX if left is None else min(left, RECORDS_MAX)
        messages = await consumer.poll(wanted, POLL_MS if wait_ms is None else wait_ms)
        if not messages and wait_ms is not None:
            break
        if not messages:
            waits.tell()
        sys.stdout.buffer.write(b"".join(_line(message, as_json) for message in messages))
        sys.stdout.buffer.flush()
        left = None if left is None else left - len(messages)
        if ack == "release":
            released += messages
        else:
            _report(await consumer.settle(messages, AckType[ack.upper()], reason=reason))
    _report(await consumer.settle(released, AckType.RELEASE))


def _line(message: ShareMessage, as_json: bool) -> bytes:
    if not as_json:
        return (message.value or b"") + b"\n"
    from postroad.cli.record_json import to_json
    from postroad.wire.records import Record

    record = Record(message.offset, message.timestamp, message.key, message.value, message.headers)
    return to_json(*message.topic_partition, record, deliveries=message.delivery_count) + b"\n"


def _report(refused: Sequence[Any]) -> None:
    """A line for each reason: a lost connection is one for hundreds of messages."""
    reasons = [str(refusal.error) for refusal in refused]
    for reason in dict.fromkeys(reasons):
        click.echo(f"{reasons.count(reason)} not acknowledged, they may come again: {reason}", err=True)
