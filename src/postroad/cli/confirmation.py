"""The question before something is destroyed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from postroad.cli.session import Failed

F = TypeVar("F", bound=Callable[..., Any])


def yes_option(command: F) -> F:
    return click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation.")(command)


def confirm(question: str, yes: bool) -> None:
    """Returns if the user agrees. Without --yes there must be a terminal on which to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: add --yes to go ahead. Nothing was done")
    click.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was done")
