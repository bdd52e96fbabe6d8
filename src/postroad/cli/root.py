"""The list of commands. A command's module is loaded when it is called or listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from postroad import __version__
from postroad.cli import ending
from postroad.cli.command import Group

# In the order in which somebody new meets them; each is `module:command` below this package.
COMMANDS: Final = {
    "serve": "serve:serve",
    "gateway": "gateway:gateway",
    "config": "config:config",
    "cert": "cert:cert",
    "cluster": "cluster:cluster",
    "top": "top:top",
    "topic": "topic:topic",
    "publish": "publish:publish",
    "consume": "consume:consume",
    "browse": "browse:browse",
    "group": "group:group",
    "subscription": "subscription:subscription",
    "worker": "worker:worker",
    "redrive": "redrive:redrive",
    "transaction": "transaction:transaction",
    "user": "user:user",
    "acl": "acl:acl",
    "quota": "quota:quota",
    "mirror": "mirror:mirror",
    "pipeline": "pipeline:pipeline",
    "sql": "sql:sql",
    "log": "log:log",
    "backup": "backup:backup",
    "doctor": "doctor:doctor",
    "bench": "bench:bench",
}

_FILE: Final = click.Path(path_type=Path, dir_okay=False)

EPILOG: Final = """\b
Exit codes:
  0  done
  1  failed: no node answered, the node refused, or data is damaged; standard error says why
  2  called wrongly: an unknown command, or a wrong option or argument
Ctrl-C and a closed pipe (`| head -1`) end a command by a signal; shells show that as 130 and 141.
"""


class Commands(Group):
    def __init__(self, *args: Any, table: Mapping[str, str] = COMMANDS, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"postroad.cli.{module}"), name)
        return command


class Root(Commands):
    def __call__(self, arguments: Sequence[str] | None = None) -> NoReturn:
        """The program itself: `postroad` and `python -m postroad` call it."""
        ending.run(self, arguments)


@click.group(cls=Root, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="postroad")
@click.option(
    "--profile",
    type=_FILE,
    envvar="POSTROAD_PROFILE",
    show_envvar=True,
    metavar="FILE",
    help="Where the cluster is and who you are there (TOML: bootstrap, ca, user, password).",
)
@click.option("--user", metavar="NAME", help="Log in as this user.")
@click.option("--password-file", type=_FILE, metavar="FILE", help="The user's password, in the first line.")
@click.option(
    "--master-key", type=_FILE, metavar="FILE", help="Log in with the cluster's master key instead."
)
@click.pass_context
def main(
    context: click.Context,
    profile: Path | None,
    user: str | None,
    password_file: Path | None,
    master_key: Path | None,
) -> None:
    """Postroad: a durable message broker that Kafka clients can use unchanged."""
    if profile or user or password_file or master_key:
        from postroad.cli.profile import choose

        context.obj = choose(profile, user, password_file, master_key)
