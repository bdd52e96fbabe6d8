"""Settings on the command line: the options that `serve`, `gateway` and `config` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from postroad.cli.session import Failed
from postroad.errors import ConfigurationError

if TYPE_CHECKING:
    from postroad.config import Loaded
    from postroad.config.sources import Fill

F = TypeVar("F", bound=Callable[..., Any])


def node_options(command: F) -> F:
    """The command line's say in the settings of a node and of the gateway beside it."""
    command = gateway_options(command)
    for option in (
        click.option("--no-http", is_flag=True, help="Don't start a gateway."),
        click.option(
            "--store",
            metavar="URL",
            help="The coordination store of a cluster, such as etcd://10.0.0.1:2379/postroad. "
            "[default: a file in the data directory]",
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


def gateway_options(command: F) -> F:
    """The part of it that a gateway alone can be told."""
    for option in (
        click.option(
            "--insecure", is_flag=True, help="Allow an address that other machines can reach, without TLS."
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="NAME=VALUE",
            help="Set any setting, such as topics.partitions=3. May be repeated.",
        ),
        click.option(
            "--config",
            "file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Read settings from this TOML file; `postroad config` prints one.",
        ),
        click.option(
            "--http", metavar="HOST:PORT", help="Where HTTP clients connect. [default: 127.0.0.1:8080]"
        ),
    ):
        command = option(command)
    return command


class NewFile(click.Path):
    """A file that is to be written: its directory is there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        parent = Path(os.fsdecode(found)).absolute().parent
        if not os.access(parent, os.W_OK | os.X_OK):
            there = "can't be written to" if parent.is_dir() else "does not exist"
            self.fail(f"the directory {str(parent)!r} {there}", param, ctx)
        return found


def ready_file_option(command: F) -> F:
    return click.option(
        "--ready-file",
        type=NewFile(dir_okay=False),
        help="Write this file, as JSON, once clients can connect.",
    )(command)


def node_flags(
    data: Path | None, kafka: str | None, http: str | None, no_http: bool, store: str | None
) -> dict[str, str]:
    """The options of `node_options` as settings."""
    flags = gateway_flags(http)
    if no_http:
        flags["http.enabled"] = "false"
    if data is not None:
        flags["data.dir"] = str(data)
    if store is not None:
        flags["cluster.store"] = store
    if kafka is not None:
        flags["kafka.host"], flags["kafka.port"] = _address(kafka, "--kafka")
    return flags


def gateway_flags(http: str | None) -> dict[str, str]:
    if http is None:
        return {}
    host, port = _address(http, "--http")
    return {"http.enabled": "true", "http.host": host, "http.port": port}


def load_settings(
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    flags: Mapping[str, str],
    fill: Fill | None = None,
) -> Loaded:
    """The settings in effect. What is wrong with them is said as an error of the command."""
    from postroad.config import load

    given = {**dict(_split(text) for text in overrides), **flags}
    if insecure:
        given["kafka.insecure"] = given["http.insecure"] = "true"
    try:
        return load(file=file, flags=given, fill=fill)
    except ConfigurationError as error:
        raise Failed(str(error)) from None


def _split(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise click.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--set")
    return name.strip(), value.strip()


def _address(given: str, option: str) -> tuple[str, str]:
    host, colon, port = given.rpartition(":")
    if not colon or not port.isdecimal():
        raise click.BadParameter(f"{given!r} is not HOST:PORT", param_hint=option)
    return host.strip("[]"), port
