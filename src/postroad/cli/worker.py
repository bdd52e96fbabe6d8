"""`postroad worker module:app`: runs the workers of an app, in one process or several."""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli.command import Command
from postroad.cli.numbers import WholeNumber
from postroad.cli.profile import NOBODY, current
from postroad.cli.session import DEFAULT_BOOTSTRAP, Failed, address_of, explain, is_default
from postroad.errors import PostroadError

if TYPE_CHECKING:
    from postroad.workers.app import App

PROCESSES_MAX: Final = 256
FORMAT: Final = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


@click.command(cls=Command)
@click.argument("target", metavar="MODULE:APP")
@click.option(
    "-p",
    "--processes",
    type=WholeNumber(1, PROCESSES_MAX),
    default=1,
    show_default=True,
    help="How many processes share the work. One that dies is started again.",
)
@click.option("--reload", "reloads", is_flag=True, help="Start anew when a Python file changes.")
@click.option(
    "--reload-dir",
    "directories",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Where files are looked at: here, unless you say otherwise. May be repeated.",
)
@click.option(
    "-b",
    "--bootstrap",
    default=DEFAULT_BOOTSTRAP,
    envvar="POSTROAD_BOOTSTRAP",
    show_envvar=True,
    metavar="HOST:PORT[,…]",
    help="Address of a node, or of several, in place of the app's own.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much the workers tell.",
)
@click.option("--supervised", is_flag=True, hidden=True, help="End with standard input.")
def worker(
    target: str,
    processes: int,
    reloads: bool,
    directories: tuple[Path, ...],
    bootstrap: str,
    log_level: str,
    supervised: bool,
) -> None:
    """Run the workers of an app (`postroad.App`).

    \b
    postroad worker jobs                     # the app `app` of jobs.py, here
    postroad worker shop.tasks:app --processes 4
    postroad worker jobs --reload            # while you write it

    SIGTERM and Ctrl-C finish the jobs that run and give the others back; a second one cancels what runs, and
    its messages come again. A cluster that can't be reached is waited for.
    """
    logging.basicConfig(level=log_level.upper(), format=FORMAT)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what jobs print is seen when they print it
    if processes > 1 or reloads:
        _supervise(processes, (directories or (Path(),)) if reloads else ())
        return
    app = load(target)
    profile = current()
    if not is_default(bootstrap) or profile is not NOBODY:
        app.connect_to(address_of(bootstrap, profile), profile.credentials)
    from postroad.workers.serving import serve

    try:
        serve(app, ends_with_stdin=supervised)
    except PostroadError as error:
        raise Failed(explain(error)) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _supervise(processes: int, watched: tuple[Path, ...]) -> None:
    from postroad.workers.processes import Processes

    code = Processes(command_of_a_child(sys.argv[1:]), processes, watched).run()
    raise click.exceptions.Exit(code)


def command_of_a_child(arguments: list[str]) -> list[str]:
    """The same command for one process that this one looks after."""
    return [sys.executable, "-m", "postroad", *_for_one(arguments), "--supervised"]


def _for_one(arguments: list[str]) -> list[str]:
    """Without the options of this process: a later one wins."""
    kept = [each for each in arguments if each != "--reload"]
    return [*kept, "--processes", "1"]


def load(target: str) -> App:
    """The app that `module:name` names, from this directory or from what is installed."""
    from postroad.workers.app import App

    module_name, _, name = target.partition(":")
    name = name or "app"
    module_name = module_name.removesuffix(".py").replace(os.sep, ".")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise click.BadParameter(f"there is no module {module_name!r} in {os.getcwd()}") from None
    except ValueError:
        raise click.BadParameter(f"{target!r} is not module:app") from None
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, App):
        apps = sorted(key for key, value in vars(module).items() if isinstance(value, App))
        there = f"; it has {', '.join(apps)}" if apps else ""
        raise click.BadParameter(f"module {module_name!r} has no postroad.App {name!r}{there}")
    return found
