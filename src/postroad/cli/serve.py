"""`postroad serve`: a node in this process, and the options that it shares with `postroad config`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from postroad.cli.session import Failed
from postroad.errors import ConfigurationError

if TYPE_CHECKING:
    from postroad.config import Loaded

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(command: F) -> F:
    """The command line's say in the settings."""
    for option in (
        click.option("--insecure", is_flag=True, help="Allow an address that others can reach, without TLS."),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="NAME=VALUE",
            help="Any setting, such as topics.partitions=3.",
        ),
        click.option(
            "--config",
            "file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings in TOML; `postroad config` writes them all.",
        ),
        click.option(
            "--kafka", metavar="HOST:PORT", help="Where Kafka clients connect. [default: 127.0.0.1:9092]"
        ),
        click.option(
            "--data",
            type=click.Path(file_okay=False, path_type=Path),
            help="The data directory. [default: ./postroad-data]",
        ),
    ):
        command = option(command)
    return command


@click.command()
@settings_options
@click.option(
    "--ready-file", type=click.Path(dir_okay=False), help="Written, as JSON, once clients may connect."
)
def serve(
    data: Path | None,
    kafka: str | None,
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    ready_file: str | None,
) -> None:
    """Run a node until SIGTERM or Ctrl-C. With nothing configured it keeps to this machine.

    Settings come from a file, the environment (POSTROAD_SECTION_NAME) and these options, the
    later before the earlier.
    """
    loaded = load_settings(data, kafka, file, overrides, insecure)
    from postroad.broker.serve import run

    sys.exit(run(loaded, ready_file))


def load_settings(
    data: Path | None, kafka: str | None, file: Path | None, overrides: Sequence[str], insecure: bool
) -> Loaded:
    """The settings in effect. What is wrong with them is said as an error of the command."""
    from postroad.config import load

    flags: dict[str, object] = dict(_split(given) for given in overrides)
    if data is not None:
        flags["data.dir"] = str(data)
    if kafka is not None:
        flags["kafka.host"], flags["kafka.port"] = _address(kafka)
    if insecure:
        flags["kafka.insecure"] = "true"
    try:
        return load(file=file, flags=flags)
    except ConfigurationError as error:
        raise Failed(str(error)) from None


def _split(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--set")
    return name.strip(), value.strip()


def _address(given: str) -> tuple[str, str]:
    host, colon, port = given.rpartition(":")
    if not colon or not port.isdecimal():
        raise click.BadParameter(f"{given!r} is not HOST:PORT", param_hint="--kafka")
    return host.strip("[]"), port
