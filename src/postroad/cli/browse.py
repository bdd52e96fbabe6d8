"""`postroad browse`: messages of a topic that a filter is true of."""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from postroad.cli.command import Command
from postroad.cli.numbers import COUNT, PARTITION
from postroad.cli.param_type import ParamType
from postroad.cli.session import cluster_options, talk
from postroad.cli.start import BEGINNING, Start, StartType, resolve
from postroad.cli.topic import known
from postroad.filters import Filter, FilterError, compile_filter

if TYPE_CHECKING:
    from postroad.client import Client, TopicPartition
    from postroad.client.scan import Found, Scanned

END_OFFSET: Final = (1 << 63) - 1
VALUE_CHARACTERS: Final = 2000  # of a line for people; --json has all of it
TELL_S: Final = 0.5
_POSITION: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19})*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Positions = dict[int, int]


class WhereType(ParamType[Filter]):
    name = "filter"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Filter:
        if isinstance(value, Filter):
            return value
        try:
            return compile_filter(str(value))
        except FilterError as error:
            pointer = " " * (error.column - 1) + "^"
            self.fail(f"{error}\n  {value}\n  {pointer}", param, ctx)


class FromType(ParamType["Start | Positions"]):
    """As `consume --from`, and where an earlier scan stopped: 0:42,1:17."""

    name = "start"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Start | Positions:
        text = str(value)
        if _POSITION.fullmatch(text):
            pairs = [pair.split(":") for pair in text.split(",")]
            return {int(partition): min(int(offset), END_OFFSET) for partition, offset in pairs}
        return StartType().convert(value, param, ctx)


@click.command(cls=Command)
@click.argument("topic")
@click.option(
    "-w",
    "--where",
    "filter_",
    type=WhereType(),
    metavar="FILTER",
    help="Only messages that this is true of: 'key ~ \"order-*\" and value.total > 100'.",
)
@click.option(
    "--from",
    "start",
    type=FromType(),
    metavar="START",
    help="As `consume --from`: beginning (default), end, 1200, -10, 15m, 2026-03-01T08:00; or where an "
    "earlier scan stopped, such as 0:42,1:17.",
)
@click.option("-p", "--partition", type=PARTITION, help="Look only through this partition.")
@click.option("-n", "--limit", type=COUNT, help="Stop when so many were found.")
@click.option("-f", "--live", is_flag=True, help="Go on with new messages until Ctrl-C.")
@click.option(
    "--committed", is_flag=True, help="Leave out messages of transactions that are open or were aborted."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print each message as a line of JSON with all its fields."
)
@cluster_options
def browse(
    topic: str,
    filter_: Filter | None,
    start: Start | Positions | None,
    partition: int | None,
    limit: int | None,
    live: bool,
    committed: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Look through a topic's messages, as many as there are, for those that match.

    \b
    postroad browse orders --where 'value.total > 100'
    postroad browse orders --where 'key ~ "de-*" and header.source = "shop"' --from 2h --limit 10
    postroad browse orders --where 'not exists value.customer.id' --live --json

    Fields are key, value, value.NAME[0].NAME (of values that are JSON), header.NAME, offset, partition and
    timestamp; they are compared with = != < <= > >= ~ (with * and ?) and in (…), or `exists FIELD`; and, or,
    not and parentheses put comparisons together. docs/gateway.md tells all of it.

    Nothing is received, committed or changed. Standard error says how far it is; ended by Ctrl-C, it says
    where to go on.
    """

    async def work(client: Client) -> None:
        from postroad.client import TopicPartition, offsets, scan
        from postroad.client.offsets import READ_COMMITTED, READ_UNCOMMITTED

        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        found = await known(client, topic)
        numbers = range(len(found.partitions)) if partition is None else [partition]
        partitions = [TopicPartition(topic, number) for number in numbers]
        for each in partitions:
            found.check(each.partition)
        starts = await _starts(client, partitions, start or BEGINNING)
        ends = (
            dict.fromkeys(partitions, END_OFFSET)
            if live
            else await offsets.latest(client, partitions, isolation)
        )
        report = _Report(as_json, starts)
        limits = scan.Limits(math.inf if limit is None else limit, math.inf, math.inf)
        wanted = None if filter_ is None else filter_.matches
        try:
            await scan.scan(client, starts, ends, wanted, limits, isolation, report.tell)
        except asyncio.CancelledError:
            report.end(stopped=True)
            raise
        report.end(stopped=False)

    talk(bootstrap, timeout_s, work)


async def _starts(
    client: Client, partitions: list[TopicPartition], start: Start | Positions
) -> dict[TopicPartition, int]:
    """A partition that a position does not name is new: from its beginning."""
    if isinstance(start, Start):
        return await resolve(client, partitions, start)
    from postroad.client import offsets

    first, last = await offsets.earliest(client, partitions), await offsets.latest(client, partitions)
    return {each: min(max(start.get(each.partition, 0), first[each]), last[each]) for each in partitions}


class _Report:
    """Messages on standard output as they are found; how far it is on standard error."""

    def __init__(self, as_json: bool, starts: Mapping[TopicPartition, int]) -> None:
        self._as_json = as_json
        self._positions = dict(starts)
        self._scanned = self._found = 0
        self._is_shown = sys.stderr.isatty() and not sys.stdout.isatty()
        self._told_at = 0.0

    def tell(self, scanned: Scanned) -> None:
        self._positions, self._scanned = dict(scanned.positions), scanned.scanned
        self._found += len(scanned.found)
        if scanned.found:
            sys.stdout.buffer.write(b"".join(map(self._line, scanned.found)))
            sys.stdout.buffer.flush()
        now = asyncio.get_running_loop().time()
        if self._is_shown and now - self._told_at >= TELL_S:
            self._told_at = now
            click.echo(f"\r\x1b[K{self._progress}", nl=False, err=True)

    def end(self, *, stopped: bool) -> None:
        begin = "\r\x1b[K" if self._is_shown else ""
        click.echo(f"{begin}{self._progress}", err=True)
        if stopped:
            click.echo(f"go on with --from {self._at}", err=True)

    @property
    def _progress(self) -> str:
        return f"scanned {self._scanned:,}, found {self._found:,}"

    @property
    def _at(self) -> str:
        return ",".join(f"{each.partition}:{at}" for each, at in sorted(self._positions.items()))

    def _line(self, found: Found) -> bytes:
        (topic, partition), record = found
        if self._as_json:
            from postroad.cli.record_json import to_json

            return to_json(topic, partition, record) + b"\n"
        parts = [
            _time(record.timestamp),
            f"{partition}:{record.offset}",
            _shown(record.key),
            _shown(record.value),
        ]
        return "  ".join(parts).encode(errors="backslashreplace") + b"\n"


def _time(timestamp: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp)).isoformat(timespec="milliseconds")[:-6] + "Z"
    except OverflowError:
        return str(timestamp)


def _shown(data: bytes | None) -> str:
    """On one line, and without what could steer a terminal; no UTF-8: as hexadecimal escapes."""
    if data is None:
        return "-"
    cut = data[: VALUE_CHARACTERS * 4]
    text = cut.decode("utf-8", "backslashreplace")
    short = text[:VALUE_CHARACTERS] + ("…" if len(text) > VALUE_CHARACTERS or len(cut) < len(data) else "")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in short)
