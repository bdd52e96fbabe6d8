"""Commands and groups whose arguments are text: what is no UTF-8 is refused before anything is done.

Python hands over bytes that are no UTF-8 as lone surrogates, which can neither be sent nor printed. A
parameter that may be any bytes (a key, a file's name) has a type with `takes_any_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from postroad.cli.param_type import ParamType


class RawText(ParamType[str]):
    """Text that becomes bytes by `as_bytes`, whatever they are."""

    name = "text"
    takes_any_bytes = True


class FilePath(click.Path):
    """A path; file systems don't care for UTF-8."""

    takes_any_bytes = True


RAW: RawText = RawText()


class Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for given in args:
            if "\0" in given:
                raise click.UsageError(f"{given!r} has a zero byte in it", ctx)
        rest = super().parse_args(ctx, args)
        for parameter in self.get_params(ctx):
            if not getattr(parameter.type, "takes_any_bytes", False):
                _check(ctx, parameter)
        return rest


class Group(click.Group):
    command_class = Command


def as_bytes(text: str) -> bytes:
    """The bytes that the shell handed over."""
    return text.encode("utf-8", "surrogateescape")


def _check(ctx: click.Context, parameter: click.Parameter) -> None:
    for text in _texts(ctx.params.get(parameter.name or "")):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.BadParameter(f"{as_bytes(text)!r} is not UTF-8", ctx, parameter) from None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
