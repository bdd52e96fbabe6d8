"""`postroad top`: nodes, topics, subscriptions and groups, live in a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli.command import Command
from postroad.cli.duration import DurationType
from postroad.cli.numbers import COUNT
from postroad.cli.session import cluster_options, explain, talk
from postroad.errors import PostroadError

if TYPE_CHECKING:
    from postroad.cli.top_frame import Frame, FrameTable, Look
    from postroad.client import Client

FIRST_S: Final = 1.0  # rates need two looks
LINES_MIN: Final = 3  # rows of each table, however small the terminal is
QUIT: Final = b"qQ\x03\x04"  # also Ctrl-C and Ctrl-D, as a terminal without signals sends them

Show = Callable[["Frame"], None]


@click.command(cls=Command)
@click.option(
    "--interval",
    "interval_ms",
    type=DurationType(3_600_000, 200, "nodes have to do something for each look"),
    default="2s",
    show_default=True,
    metavar="DURATION",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option("-n", "--frames", type=COUNT, help="End after so many frames.")
@cluster_options
def top(interval_ms: int, once: bool, frames: int | None, bootstrap: str, timeout_s: float) -> None:
    """Watch nodes, topics, subscriptions and groups: rates, lag, and how the nodes do.

    \b
    postroad top
    postroad top --once | grep orders

    On a terminal the screen is renewed until q or Ctrl-C. Elsewhere frames are printed one after the other,
    without anything that steers a terminal. The busiest topics come first, and the subscriptions and groups
    that are furthest behind. The node with a * is the controller.
    """
    count = 1 if once else frames

    async def work(client: Client) -> None:
        on_screen = sys.stdout.isatty() and not once
        stopping = asyncio.Event()
        with _screen() if on_screen else contextlib.nullcontext(_print) as show, _keys(stopping, on_screen):
            await _watch(client, show, stopping, interval_ms / 1000, count)

    talk(bootstrap, timeout_s, work)


async def _watch(
    client: Client, show: Show, stopping: asyncio.Event, interval_s: float, count: int | None
) -> None:
    """A look that fails while it runs is told, and the frame before stays; the first one has to succeed."""
    from postroad.cli.top_frame import frame, look

    before = await client.retry(lambda: look(client))
    shown, pause_s = 0, min(interval_s, FIRST_S)
    last: Frame | None = None
    while not await _stopped(stopping, pause_s):
        try:
            now: Look = await look(client)
        except PostroadError as error:
            client.forget()
            if last is not None:
                show(last._replace(headline=f"{explain(error)}; trying again"))
        else:
            last = frame(before, now)
            show(last)
            before = now
            shown += 1
            if shown == count:
                return
        pause_s = interval_s


async def _stopped(stopping: asyncio.Event, pause_s: float) -> bool:
    try:
        async with asyncio.timeout(pause_s):
            await stopping.wait()
    except TimeoutError:
        return False
    return True


# --- on a terminal


@contextlib.contextmanager
def _screen() -> Iterator[Show]:
    """A screen of its own; what was there before is back afterwards, however it ends."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda found: live.update(_drawn(found, console.size.height), refresh=True)


@contextlib.contextmanager
def _keys(stopping: asyncio.Event, on_screen: bool) -> Iterator[None]:
    """q stops it, where there is somebody to press it. So does SIGTERM: the terminal is put in order."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    try:
        if not on_screen or not sys.stdin.isatty():
            yield
            return
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        tty.setcbreak(descriptor)
        loop.add_reader(descriptor, lambda: _pressed(descriptor, stopping))
        try:
            yield
        finally:
            loop.remove_reader(descriptor)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _pressed(descriptor: int, stopping: asyncio.Event) -> None:
    keys = os.read(descriptor, 64)
    if not keys or any(key in QUIT for key in keys):  # nothing: the terminal is gone
        stopping.set()


def _drawn(found: Frame, height: int) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(found.headline, style="bold", no_wrap=True, overflow="ellipsis")]
    for table in fitted(found.tables, height - 2):
        drawn = Table(box=SIMPLE_HEAD, pad_edge=False, expand=True)
        for number, column in enumerate(table.columns):
            is_text = number == 0 or column == "address"
            drawn.add_column(
                column, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis",
                ratio=1 if number == 0 else None,
            )  # fmt: skip
        for row in table.rows:
            drawn.add_row(*map(Text, row))
        parts.append(drawn)
    return Group(*parts, Text("q: quit", style="dim"))


def fitted(tables: list[FrameTable], lines: int) -> list[FrameTable]:
    """As many rows of each as there is room for, the small tables whole."""
    head_lines = 4  # a table's head, and the lines around it
    room = max(lines - head_lines * len(tables), LINES_MIN * len(tables))
    rows: dict[int, int] = {}
    smallest_first = sorted(range(len(tables)), key=lambda index: len(tables[index].rows))
    for left, index in zip(range(len(tables), 0, -1), smallest_first, strict=True):
        rows[index] = min(len(tables[index].rows), max(LINES_MIN, room // left))
        room -= rows[index]
    return [table._replace(rows=table.rows[: rows[index]]) for index, table in enumerate(tables)]


# --- elsewhere


def _print(found: Frame) -> None:
    click.echo(found.headline)
    for columns, rows in found.tables:
        lines = [tuple(column.upper() for column in columns), *rows]  # all: somebody may look for one of them
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        click.echo()
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            click.echo("  ".join(cells).rstrip())
    click.echo()
    sys.stdout.flush()
