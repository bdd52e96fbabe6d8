"""`postroad user key …`: access keys, with which users sign requests as AWS's clients do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.session import cluster_options, json_option, talk

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.wire.access_keys import AccessKey


@click.group(cls=Group)
def key() -> None:
    """Create, list, disable and delete the access keys of users, for SQS clients."""


@key.command()
@click.argument("user")
@json_option
@cluster_options
def create(user: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Give a user one more access key. Its secret is printed once."""

    async def work(client: Client) -> AccessKey:
        from postroad.client import access_keys

        return await access_keys.create(client, user)

    made = talk(bootstrap, timeout_s, work)
    if as_json:
        output.write_json({"user": user} | shown(made))
        return
    click.echo(f"created an access key of {user}")
    tell(made)


@key.command(name="list")
@click.argument("user", required=False)
@json_option
@cluster_options
def list_keys(user: str | None, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List access keys, of one user or of all."""

    async def work(client: Client) -> list[AccessKey]:
        from postroad.client import access_keys

        return await access_keys.list_keys(client, user)

    found = talk(bootstrap, timeout_s, work)
    rows = [
        (each.id, each.user, "enabled" if each.enabled else "disabled", _date(each.created_ms))
        for each in found
    ]
    output.listing(("access key", "user", "state", "created"), rows, as_json, "no access keys yet")


@key.command()
@click.argument("key_id", metavar="KEY")
@cluster_options
def disable(key_id: str, bootstrap: str, timeout_s: float) -> None:
    """Refuse what is signed with this key, until it is enabled again."""
    _enable(key_id, bootstrap, timeout_s, enabled=False)
    click.echo(f"disabled {key_id}")


@key.command()
@click.argument("key_id", metavar="KEY")
@cluster_options
def enable(key_id: str, bootstrap: str, timeout_s: float) -> None:
    """Take what is signed with this key again."""
    _enable(key_id, bootstrap, timeout_s, enabled=True)
    click.echo(f"enabled {key_id}")


@key.command()
@click.argument("key_id", metavar="KEY")
@yes_option
@cluster_options
def delete(key_id: str, yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete an access key for good."""
    confirm(f"Delete access key {key_id}?", yes)

    async def work(client: Client) -> None:
        from postroad.client import access_keys

        await access_keys.delete(client, key_id)

    talk(bootstrap, timeout_s, work)
    click.echo(f"deleted {key_id}")


def _enable(key_id: str, bootstrap: str, timeout_s: float, *, enabled: bool) -> None:
    async def work(client: Client) -> None:
        from postroad.client import access_keys

        await access_keys.enable(client, key_id, enabled=enabled)

    talk(bootstrap, timeout_s, work)


def shown(made: AccessKey) -> dict[str, str]:
    """By the names that AWS's tools have for them."""
    return {"access_key_id": made.id, "secret_access_key": made.secret}


def tell(made: AccessKey) -> None:
    for name, value in shown(made).items():
        click.echo(f"{name}: {value}")


def _date(created_ms: int) -> str:
    return datetime.fromtimestamp(created_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
