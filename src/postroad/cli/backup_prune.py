"""`postroad backup prune`"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.numbers import WholeNumber
from postroad.cli.session import Failed, json_option

if TYPE_CHECKING:
    from postroad.backups.prune import Pruned

COUNT: Final = WholeNumber(1, 36_525)  # days in a century: whoever writes more has mistyped


@click.command(cls=Command)
@click.argument("where", metavar="WHERE")
@click.option("--keep-last", "last", type=COUNT, metavar="N", help="Keep the newest N.")
@click.option("--keep-days", "days", type=COUNT, metavar="N", help="Keep all of the last N days.")
@click.option("--keep-weekly", "weekly", type=COUNT, metavar="N", help="Keep the newest of each of N weeks.")
@click.option(
    "--keep-monthly", "monthly", type=COUNT, metavar="N", help="Keep the newest of each of N months."
)
@click.option("--dry-run", is_flag=True, help="Show what would go, and delete nothing.")
@yes_option
@json_option
def prune(
    where: str,
    last: int | None,
    days: int | None,
    weekly: int | None,
    monthly: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete backups at WHERE that no rule keeps, and the parts that only they need.

    A backup stays if any rule keeps it; the newest one stays in any case, and so does what backups that
    stay share with others. A prune that is interrupted has harmed nothing: give the command again, and the
    rest goes too. It does not begin while a backup is made there; one that is to be made meanwhile waits.
    """
    from postroad.backups.errors import BackupError
    from postroad.backups.keep import Keep
    from postroad.backups.prune import preview
    from postroad.backups.prune import prune as run
    from postroad.backups.target import open_target

    if not (last or days or weekly or monthly):
        raise click.UsageError(
            "say which backups stay: --keep-last, --keep-days, --keep-weekly or --keep-monthly"
        )
    keep = Keep(last or 0, days or 0, weekly or 0, monthly or 0)
    try:
        target = open_target(where)
        found = preview(target, keep)
        if not dry_run and (found.removed or found.parts):
            confirm(f"Delete {_summary(found)}?", yes)
            with output.progress(found.parts, "pruning") as advance:
                found = run(target, keep, partial(_at_most, advance, found.parts))
    except BackupError as error:
        raise Failed(str(error)) from None
    _show(found, dry_run, as_json)


def _at_most(advance: output.Progress, total: int, done: int) -> None:
    """More may have come to light since the bar was drawn."""
    advance(min(done, total))


def _show(found: Pruned, dry_run: bool, as_json: bool) -> None:
    if as_json:
        output.write_json({**found._asdict(), "dry_run": dry_run})
        return
    for name in found.removed:
        click.echo(name)
    verb = "would delete" if dry_run else "deleted"
    click.echo(f"{verb} {_summary(found)}; {_backups(len(found.kept))} stay{'s' * (len(found.kept) == 1)}")


def _summary(found: Pruned) -> str:
    return f"{_backups(len(found.removed))} and {found.bytes} bytes that no other needs"


def _backups(count: int) -> str:
    return "1 backup" if count == 1 else f"{count} backups"
