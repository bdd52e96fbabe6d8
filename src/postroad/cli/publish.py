"""`postroad publish`: messages from arguments, files, or lines of standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from postroad.cli.command import RAW, Command, FilePath, as_bytes
from postroad.cli.numbers import PARTITION
from postroad.cli.session import Failed, cluster_options, talk
from postroad.wire.asked_times import unreadable_time
from postroad.wire.compression import NAMES

if TYPE_CHECKING:
    from postroad.cli.record_json import Message
    from postroad.client import Client, Delivery

ACKS: Final = {"0": 0, "1": 1, "all": -1}
CHUNK_BYTES: Final = 256 * 1024
UNCONFIRMED_MAX: Final = 10_000  # deliveries that are remembered before their answers are looked at
LINE_BYTES_MAX: Final = 64 * 1024 * 1024


class Shape(NamedTuple):
    """How text becomes a message."""

    as_json: bool
    key: bytes | None
    separator: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    empty_is_null: bool
    keep_partitions: bool

    def message(self, text: bytes) -> Message:
        from postroad.cli.record_json import Message, from_json

        if self.as_json:
            found = from_json(text)
            return found._replace(
                headers=[*found.headers, *self.headers],
                key=self.key if found.key is None else found.key,
                partition=found.partition if self.keep_partitions else self.partition,
            )
        key, value = self.key, text
        if self.separator is not None:
            key, separator, value = text.partition(self.separator)
            if not separator:
                raise ValueError(f"has no separator {self.separator.decode()!r}: {text[:60]!r}")
        null = self.empty_is_null and not value
        return Message(None if null else value, key, self.headers, self.partition)


@click.command(cls=Command)
@click.argument("topic")
@click.argument("messages", nargs=-1, type=RAW, metavar="[MESSAGE]...")
@click.option("-k", "--key", type=RAW, help="Key of every message.")
@click.option(
    "-K", "--key-separator", type=RAW, metavar="TEXT", help="Text between key and value in each message."
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    type=RAW,
    metavar="NAME=VALUE",
    help="Add a header to every message. May be repeated.",
)
@click.option(
    "-p", "--partition", type=PARTITION, help="Publish to this partition; by default the key decides."
)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=FilePath(exists=True, dir_okay=False, path_type=Path),
    help="Publish a file as one message (with --lines each of its lines).",
)
@click.option("-l", "--lines", is_flag=True, help="Each line of a --file is a message.")
@click.option(
    "--json", "as_json", is_flag=True, help="Messages are JSON objects, as `consume --json` writes them."
)
@click.option(
    "--keep-partitions", is_flag=True, help="With --json: publish to the partition that a message names."
)
@click.option("--empty-is-null", is_flag=True, help="Publish an empty value as a tombstone (null).")
@click.option("-z", "--compression", type=click.Choice(NAMES), default="none", show_default=True)
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="Print partition and offset of each message.")
@cluster_options
def publish(
    topic: str,
    messages: Sequence[str],
    key: str | None,
    key_separator: str | None,
    headers: Sequence[str],
    partition: int | None,
    files: Sequence[Path],
    lines: bool,
    as_json: bool,
    keep_partitions: bool,
    empty_is_null: bool,
    compression: str,
    acks: str,
    verbose: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Publish messages to TOPIC: the arguments, the files, or the lines of standard input.

    \b
    postroad publish orders 'first' 'second'
    postroad publish orders --key 42 --header source=shop '{"total": 10}'
    tail -f access.log | postroad publish access
    postroad consume orders --json | postroad publish copy --json
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    shape = Shape(
        as_json,
        None if key is None else as_bytes(key),
        None if key_separator is None else as_bytes(key_separator),
        [_header(given) for given in headers],
        partition,
        empty_is_null,
        keep_partitions,
    )
    from_stdin = not messages and not files
    if from_stdin and sys.stdin.isatty():
        click.echo("Each line is a message; end with Ctrl-D.", err=True)

    async def work(client: Client) -> int:
        from postroad.client import Producer

        async with Producer(
            client, acks=ACKS[acks], compression=compression, timeout_s=timeout_s
        ) as producer:
            pending: list[Delivery] = []
            count = 0
            async for text in _texts(messages, files, lines, from_stdin):
                count += 1
                try:
                    value, its_key, its_headers, its_partition, timestamp = shape.message(text)
                except ValueError as error:
                    raise Failed(f"message {count} {error}") from None
                delivery = await producer.send(
                    topic,
                    value,
                    key=its_key,
                    headers=its_headers,
                    partition=its_partition,
                    timestamp=timestamp,
                )
                pending.append(delivery)
                if len(pending) >= UNCONFIRMED_MAX:
                    await _confirm(pending, verbose)
            await _confirm(pending, verbose)
            return count

    count = talk(bootstrap, timeout_s, work)
    click.echo(f"published {count} {'message' if count == 1 else 'messages'} to {topic}", err=True)


async def _confirm(pending: list[Delivery], verbose: bool) -> None:
    for delivery in pending:
        sent = await delivery
        if verbose:
            click.echo(f"{sent.partition} {sent.offset}")
    pending.clear()


async def _texts(
    messages: Sequence[str], files: Sequence[Path], lines: bool, from_stdin: bool
) -> AsyncIterator[bytes]:
    for message in messages:
        yield as_bytes(message)
    for path in files:
        if lines:
            with path.open("rb") as file:
                for line in file:
                    yield _without_end(line)
        else:
            yield path.read_bytes()
    if from_stdin:
        async for line in _stdin_lines():
            yield line


async def _stdin_lines() -> AsyncIterator[bytes]:
    """Lines as they come; what was read is sent while the next ones are waited for."""
    rest = b""
    while chunk := await _read(sys.stdin.fileno()):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > LINE_BYTES_MAX:
            raise Failed(f"a line is longer than {LINE_BYTES_MAX:,} bytes")
    if rest:
        yield rest


async def _read(descriptor: int) -> bytes:
    """The next chunk. Nobody joins the thread that waits for it: at a terminal that may be for ever, and
    Ctrl-C has to end the command all the same."""
    import asyncio
    from threading import Thread

    loop = asyncio.get_running_loop()
    chunk: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not chunk.done():
            chunk.set_result(data)

    def read() -> None:
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except OSError as error:
            data = b""
            click.echo(f"postroad: reading standard input: {error.strerror}", err=True)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(deliver, data)

    Thread(target=read, name="stdin", daemon=True).start()
    return await chunk


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _header(given: str) -> tuple[str, bytes | None]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--header")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"the name {as_bytes(name)!r} is not UTF-8", param_hint="--header") from None
    header = (name, as_bytes(value))
    if (wrong := unreadable_time([header])) is not None:
        raise click.BadParameter(wrong, param_hint="--header")
    return header
