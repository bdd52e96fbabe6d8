"""Tables for people (rich, on a terminal), aligned text for pipes, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

import click

Cell = str | int | float | bool | tuple[str, ...] | None

MOVE_COLUMNS: Final = ("topic", "partition", "before", "after")


class Progress(Protocol):
    def __call__(self, done: int) -> None: ...


class GrowingProgress(Protocol):
    def __call__(self, done: int, total: int) -> None: ...


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], title: str | None = None) -> None:
    if sys.stdout.isatty():
        _rich_table(columns, rows, title)
    else:
        _plain_table(columns, rows)


def write_json(content: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=2))


def listing(columns: Sequence[str], rows: Sequence[Sequence[Cell]], as_json: bool, nothing: str) -> None:
    """All there are of something; `nothing` is said to people where there are none."""
    if as_json:
        write_json(objects(columns, rows))
    elif rows:
        table(columns, rows)
    else:
        click.echo(nothing, err=True)


def moves(rows: Sequence[Sequence[Cell]], as_json: bool, dry_run: bool) -> None:
    """Positions that were changed, or would be: (topic, partition, before, after)."""
    if as_json:
        write_json(objects(MOVE_COLUMNS, rows))
        return
    table(MOVE_COLUMNS, rows)
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)


def objects(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[dict[str, Cell]]:
    """Rows as JSON objects; a column `lag seconds` is named `lag_seconds`."""
    names = [column.replace(" ", "_") for column in columns]
    return [dict(zip(names, row, strict=True)) for row in rows]


def show(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple):
        return ", ".join(cell)
    if isinstance(cell, float):
        return f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.2f}"
    return str(cell)


class Waits:
    """Tells somebody at a terminal, once, that a command which follows is waiting and has not hung."""

    def __init__(self) -> None:
        self._is_told = not sys.stderr.isatty()

    def tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            click.echo("Waiting for messages; end with Ctrl-C.", err=True)


def progress(total: int, label: str) -> AbstractContextManager[Progress]:
    """`with progress(n, "…") as advance: advance(done)`: a bar if standard error is a terminal."""
    if not sys.stderr.isatty():
        return nullcontext(lambda done: None)
    return _bar(total, label)


def growing_progress(label: str) -> AbstractContextManager[GrowingProgress]:
    """The same where the total is known later, or changes: `advance(done, total)`."""
    if not sys.stderr.isatty():
        return nullcontext(lambda done, total: None)
    return _bar(None, label)


def _bar(total: int | None, label: str) -> AbstractContextManager[Any]:
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress as Bars

    @contextmanager
    def bar() -> Any:
        with Bars(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(label, total=total)

            def advance(done: int, new_total: int | None = total) -> None:
                bars.update(task, completed=done, total=new_total)

            yield advance

    return bar()


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], title: str | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for number, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[number], int | float | None) for row in rows)
        drawn.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(show(cell)) for cell in row))
    Console().print(drawn)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    lines = [[column.upper() for column in columns], *([show(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
