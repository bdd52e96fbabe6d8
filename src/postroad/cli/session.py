"""One command's talk with a cluster: options that all share, and errors as messages with an exit code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import click

from postroad.cli.ending import FAILED
from postroad.cli.numbers import SECONDS
from postroad.cli.profile import current
from postroad.client.profile import Profile
from postroad.errors import BrokerNotAvailable, ConfigurationError, NetworkException, PostroadError

if TYPE_CHECKING:
    from postroad.client import Client

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Failed(click.ClickException):
    """Said on standard error; the command ends with 1."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        click.echo(f"postroad: {self.message}", file=file, err=file is None)


def cluster_options(command: F) -> F:
    """--bootstrap and --timeout."""
    command = click.option(
        "--timeout",
        "timeout_s",
        type=SECONDS,
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Give up after this long.",
    )(command)
    return bootstrap_option(command)


def bootstrap_option(command: F) -> F:
    return click.option(
        "-b",
        "--bootstrap",
        default=DEFAULT_BOOTSTRAP,
        envvar="POSTROAD_BOOTSTRAP",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT[,…]",
        help="Address of a node, or of several.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def talk(bootstrap: str, timeout_s: float, work: Callable[[Client], Awaitable[T]]) -> T:
    """What `work` gives, done with a connected client."""
    import asyncio

    from postroad.client import Client

    profile = current()
    address = address_of(bootstrap, profile)
    credentials = None if "profile=" in address else profile.credentials  # an address may have its own

    async def connected() -> T:
        async with Client(
            address, client_id="postroad-cli", timeout_s=timeout_s, credentials=credentials
        ) as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    except ConfigurationError as error:
        raise click.BadParameter(str(error).removeprefix("bootstrap: "), param_hint="--bootstrap") from None
    except PostroadError as error:
        raise Failed(explain(error)) from None


def address_of(bootstrap: str, profile: Profile) -> str:
    """Where the command is to connect: what it was told, else where the profile says, with its CA."""
    return profile.bootstrap_for("" if is_default(bootstrap) and profile.bootstrap else bootstrap)


def address_to_hand_on(bootstrap: str) -> str:
    """The same for others, who log in as the profile says: the address names its file."""
    profile = current()
    address = address_of(bootstrap, profile)
    if not profile.user or "profile=" in address:
        return address
    if not profile.file:
        raise click.UsageError("this command takes who you are from a profile: a file with user and password")
    return f"{address}{'&' if '?' in address else '?'}profile={quote(profile.file)}"


def is_default(bootstrap: str) -> bool:
    """Nobody named an address, so that of the profile counts."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source("bootstrap")
    return bootstrap == DEFAULT_BOOTSTRAP and source in (None, click.core.ParameterSource.DEFAULT)


def explain(error: PostroadError) -> str:
    """The error in words, with what to do about it where that is known."""
    text = str(error)
    if isinstance(error, BrokerNotAvailable | NetworkException) and text.startswith("nothing listens"):
        return f"{text}: start one with `postroad serve`, or name another with --bootstrap"
    return text or type(error).__name__
