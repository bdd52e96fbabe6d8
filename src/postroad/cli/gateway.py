"""`postroad gateway`: an HTTP gateway alone, in front of nodes that run elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from postroad.cli.command import Command
from postroad.cli.profile import current
from postroad.cli.session import Failed, address_of, bootstrap_option
from postroad.cli.settings import gateway_flags, gateway_options, load_settings, ready_file_option
from postroad.errors import ConfigurationError


@click.command(cls=Command)
@bootstrap_option
@gateway_options
@ready_file_option
@click.option("--inherit", type=click.IntRange(min=0), hidden=True)  # how `postroad serve` starts its own
def gateway(
    bootstrap: str,
    http: str | None,
    file: Path | None,
    overrides: Sequence[str],
    insecure: bool,
    ready_file: str | None,
    inherit: int | None,
) -> None:
    """Run an HTTP gateway until SIGTERM or Ctrl-C. `postroad serve` starts one by itself.
    Any number of gateways can serve the same nodes.
    """
    loaded = load_settings(file, overrides, insecure, {"http.enabled": "true", **gateway_flags(http)})
    address = bootstrap if inherit is not None else address_of(bootstrap, current())
    _check_login(address, loaded.settings.security.enabled)
    from postroad.gateway.serve import run

    sys.exit(run(loaded.settings, address, ready_file, inherit))


def _check_login(address: str, asks_callers: bool) -> None:
    """A gateway in a user's name would do for everybody what that user may do."""
    from postroad.client.bootstrap import read

    try:
        logs_in = bool(current().user) or read(address).credentials is not None
    except ConfigurationError as error:
        raise click.BadParameter(str(error).removeprefix("bootstrap: "), param_hint="--bootstrap") from None
    if logs_in and not asks_callers:
        raise Failed(
            "a gateway logs in as itself, and asks its callers who they are: set security.enabled, and "
            "security.gateway_key_file to a copy of gateway.key in a node's data directory. Of a profile it "
            "takes address and CA."
        )
