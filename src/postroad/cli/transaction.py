"""`postroad transaction …`"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.duration import DurationType
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.errors import TransactionalIdNotFound

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.transaction_admin import TransactionDescription, TransactionListing

COLUMNS: Final = ("transactional id", "state", "open seconds", "producer id", "coordinator")
PARTITION_COLUMNS: Final = ("topic", "partition", "first offset")


@click.group(cls=Group)
def transaction() -> None:
    """List, describe and abort transactions."""


@transaction.command(name="list")
@click.option("--open", "only_open", is_flag=True, help="Only those that are open or about to end.")
@click.option(
    "--older-than",
    "older_than_ms",
    type=DurationType(),
    metavar="DURATION",
    help="Only those that have been open for longer: 30s, 5m, 1h.",
)
@json_option
@cluster_options
def list_transactions(
    only_open: bool, older_than_ms: int | None, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """List transactional ids with the states of their transactions."""

    async def work(client: Client) -> list[TransactionListing]:
        from postroad.client import transaction_admin as admin

        states = admin.UNDER_WAY if only_open else ()
        return await admin.list_all(client, states, admin.NONE if older_than_ms is None else older_than_ms)

    found = talk(bootstrap, timeout_s, work)
    rows = [
        (each.transactional_id, each.state, _age_s(each.started_ms), each.producer_id, each.coordinator)
        for each in found
    ]
    if only_open or older_than_ms is not None:
        nothing = "no such transaction is open"
    else:
        nothing = "no transactional ids yet: a producer with a transactional.id makes one"
    output.listing(COLUMNS, rows, as_json, nothing)


@transaction.command()
@click.argument("transactional_id")
@json_option
@cluster_options
def describe(transactional_id: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show the state of a transactional id, and the partitions that its open transaction has reached."""

    async def work(client: Client) -> TransactionDescription:
        from postroad.client import transaction_admin as admin

        return await admin.describe(client, transactional_id)

    found = _talk(transactional_id, bootstrap, timeout_s, work)
    rows = [(*each.partition, each.first_offset) for each in found.reached]
    if as_json:
        output.write_json(
            {
                "transactional_id": transactional_id,
                "state": found.state,
                "open_seconds": _age_s(found.started_ms),
                "timeout_seconds": found.timeout_ms / 1000,
                "producer_id": found.producer_id,
                "epoch": found.epoch,
                "coordinator": found.coordinator,
                "partitions": output.objects(PARTITION_COLUMNS, rows),
            }
        )
        return
    age_s = _age_s(found.started_ms)
    since = "" if age_s is None else f" for {output.show(age_s)} of {output.show(found.timeout_ms / 1000)} s"
    click.echo(
        f"{transactional_id}  {found.state}{since}, producer {found.producer_id}, epoch {found.epoch}, "
        f"coordinated by node {found.coordinator}"
    )
    if rows:
        output.table(PARTITION_COLUMNS, rows)


@transaction.command()
@click.argument("transactional_id")
@yes_option
@cluster_options
def abort(transactional_id: str, yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Abort the open transaction of a transactional id. Its producer is fenced and can't go on."""
    confirm(f"Abort the transaction of {transactional_id}, and fence its producer?", yes)

    async def work(client: Client) -> bool:
        from postroad.client import transaction_admin as admin

        return await admin.abort(client, transactional_id)

    if not _talk(transactional_id, bootstrap, timeout_s, work):
        raise Failed(f"{transactional_id} has no open transaction")
    click.echo(f"aborted the transaction of {transactional_id}")


def _age_s(started_ms: int | None) -> float | None:
    return None if started_ms is None else max(time.time() - started_ms / 1000, 0.0)


def _talk(transactional_id: str, bootstrap: str, timeout_s: float, work: Any) -> Any:
    """As `talk`, with an error that names the transactional id."""

    async def named(client: Client) -> Any:
        try:
            return await work(client)
        except TransactionalIdNotFound:
            raise Failed(f"there is no transactional id {transactional_id}") from None

    return talk(bootstrap, timeout_s, named)
