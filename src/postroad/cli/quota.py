"""`postroad quota …`"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.numbers import DecimalNumber
from postroad.cli.param_type import ParamType
from postroad.cli.session import Failed, cluster_options, json_option, talk

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.quotas import Quota

COLUMNS: Final = ("user", "client id", "produce rate", "fetch rate", "requests percent")
RATE_MAX: Final = float(1 << 50)
PERCENT_MAX: Final = 10_000.0
UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
ANYBODY: Final = "anybody else"

_RATE: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([kmg]i?)?(?:b?(?:/s)?)?", re.IGNORECASE)


class RateType(ParamType[float]):
    """`500000`, `500kB`, `10MB/s`, `1MiB/s`"""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _RATE.fullmatch(str(value).strip())
        rate = float(found[1]) * UNITS[(found[2] or "").lower()] if found else 0.0
        if not 0 < rate <= RATE_MAX:
            self.fail(f"{str(value)[:60]!r} is no rate: 500kB/s, 10MB/s or 1MiB/s", param, ctx)
        return rate


def entity_options(command: Any) -> Any:
    for option in (
        click.option("--any-client", is_flag=True, help="Each client id that has none of its own."),
        click.option("--client", "client_id", metavar="ID", help="Clients with this client id."),
        click.option("--any-user", is_flag=True, help="Each user who has none of his own."),
        click.option("--user", metavar="NAME", help="All clients of this user; or those with a client id."),
    ):
        command = option(command)
    return command


@click.group(cls=Group)
def quota() -> None:
    """Say how much users and client ids may take in a second, on each node."""


@quota.command(name="set")
@entity_options
@click.option(
    "--produce", type=RateType(), metavar="RATE", help="Bytes a second that are sent, such as 10MB/s."
)
@click.option("--fetch", type=RateType(), metavar="RATE", help="Bytes received in a second.")
@click.option(
    "--requests",
    type=DecimalNumber(0.01, PERCENT_MAX),
    metavar="PERCENT",
    help="Time of the node for their requests; 100 is a whole core.",
)
@cluster_options
def set_(
    user: str | None,
    any_user: bool,
    client_id: str | None,
    any_client: bool,
    produce: float | None,
    fetch: float | None,
    requests: float | None,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Set quotas; those that are not named stay.

    \b
    postroad quota set --user shop --produce 10MB/s
    postroad quota set --any-client --fetch 5MiB/s --requests 20
    """
    from postroad.client.quotas import FETCH, PRODUCE, REQUESTS, Quota

    given = {PRODUCE: produce, FETCH: fetch, REQUESTS: requests}
    limits = {name: value for name, value in given.items() if value is not None}
    if not limits:
        raise click.UsageError("say what: --produce, --fetch or --requests")
    wanted = Quota(*_entity(user, any_user, client_id, any_client), limits)

    async def work(client: Client) -> None:
        from postroad.client import quotas

        await quotas.set_quota(client, wanted)

    talk(bootstrap, timeout_s, work)
    click.echo("set the quota")


@quota.command(name="list")
@json_option
@cluster_options
def list_(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List quotas. For each kind the most exact one counts: user and client id, user, client id, any."""

    async def work(client: Client) -> list[Quota]:
        from postroad.client import quotas

        return await quotas.list_quotas(client)

    from postroad.client.quotas import FETCH, PRODUCE, REQUESTS

    rows = [
        (
            *(ANYBODY if name == "" else name for name in (found.user, found.client_id)),
            *(found.limits.get(name) for name in (PRODUCE, FETCH, REQUESTS)),
        )
        for found in talk(bootstrap, timeout_s, work)
    ]
    output.listing(COLUMNS, rows, as_json, "no quotas: everybody may take what there is")


@quota.command()
@entity_options
@cluster_options
def remove(
    user: str | None,
    any_user: bool,
    client_id: str | None,
    any_client: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Remove all quotas of a user, a client id, or a client id of a user."""
    who = _entity(user, any_user, client_id, any_client)

    async def work(client: Client) -> None:
        from postroad.client import quotas

        for found in await quotas.list_quotas(client):
            if (found.user, found.client_id) == who:
                await quotas.set_quota(client, quotas.Quota(*who, {}), tuple(found.limits))
                return
        raise Failed("there is no such quota: `postroad quota list` shows them")

    talk(bootstrap, timeout_s, work)
    click.echo("removed the quota")


def _entity(
    user: str | None, any_user: bool, client_id: str | None, any_client: bool
) -> tuple[str | None, str | None]:
    for name, is_any, option in ((user, any_user, "user"), (client_id, any_client, "client")):
        if name is not None and is_any:
            raise click.UsageError(f"--{option} and --any-{option} contradict each other")
        if name == "":
            raise click.UsageError(f"--{option} is empty: for all others say --any-{option}")
    found = "" if any_user else user, "" if any_client else client_id
    if found == (None, None):
        raise click.UsageError("say whose: --user, --any-user, --client or --any-client")
    return found
