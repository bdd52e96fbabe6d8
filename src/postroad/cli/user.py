"""`postroad user …`"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.profile import read_password
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.cli.user_key import key, shown, tell

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.users import User
    from postroad.wire.access_keys import AccessKey

PASSWORD_BYTES: Final = 24  # of chance, in a password that is made up here

new_password_option = click.option(
    "--new-password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The password, in the first line. Without it one is made up and printed.",
)


@click.group(cls=Group)
def user() -> None:
    """Create, list and delete users, and change their passwords and access keys."""


user.add_command(key)


@user.command()
@click.argument("name")
@click.option("--produce", multiple=True, metavar="TOPIC", help="Allow the user to write to the topic.")
@click.option("--consume", multiple=True, metavar="TOPIC", help="Allow the user to read it, with any group.")
@new_password_option
@json_option
@cluster_options
def create(
    name: str,
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    new_password_file: Path | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Create a user, who may do what --produce and --consume say, and what `postroad acl allow` will. The
    password is for Kafka clients and HTTP, the access key for SQS clients. Both are printed once.
    """
    from postroad.cli.acl import first_rights

    async def work(client: Client, password: str) -> AccessKey:
        from postroad.client import access_keys, acls, users

        if name in [found.name for found in await users.list_users(client)]:
            raise Failed(f"there is a user {name!r}: `postroad user password {name}` gives another password")
        await users.set_password(client, name, password)
        if rights:
            await acls.add_acls(client, rights)
        return await access_keys.create(client, name)

    rights = first_rights(name, produce, consume)
    password = _new_password(new_password_file)
    made = talk(bootstrap, timeout_s, lambda client: work(client, password))
    _tell(name, password, new_password_file, as_json, "created", made)


@user.command()
@click.argument("name")
@new_password_option
@json_option
@cluster_options
def password(
    name: str, new_password_file: Path | None, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Give a user another password; connections with the old one end."""

    async def work(client: Client, chosen: str) -> None:
        from postroad.client import users

        await _find(client, name)
        await users.set_password(client, name, chosen)

    chosen = _new_password(new_password_file)
    talk(bootstrap, timeout_s, lambda client: work(client, chosen))
    _tell(name, chosen, new_password_file, as_json, "changed")


@user.command(name="list")
@json_option
@cluster_options
def list_users(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List users and the ways in which they may log in."""

    async def work(client: Client) -> list[User]:
        from postroad.client import users

        return await users.list_users(client)

    found = talk(bootstrap, timeout_s, work)
    rows = [(each.name, ", ".join(each.mechanisms)) for each in found]
    output.listing(("user", "mechanisms"), rows, as_json, "no users yet: `postroad user create` makes one")


@user.command()
@click.argument("name")
@yes_option
@cluster_options
def delete(name: str, yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete a user with all access keys; connections of the user end. ACLs stay."""
    confirm(f"Delete user {name}?", yes)

    async def work(client: Client) -> None:
        from postroad.client import users

        await users.delete_user(client, await _find(client, name))

    talk(bootstrap, timeout_s, work)
    click.echo(f"deleted {name}")


async def _find(client: Client, name: str) -> User:
    from postroad.client import users

    for found in await users.list_users(client):
        if found.name == name:
            return found
    raise Failed(f"there is no user {name!r}")


def _new_password(path: Path | None) -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES) if path is None else read_password(path)


def _tell(
    name: str, password: str, path: Path | None, as_json: bool, verb: str, made: AccessKey | None = None
) -> None:
    """A password that was made up is printed once; one from a file is known already."""
    known = {} if path is not None else {"password": password}
    if as_json:
        output.write_json({"user": name} | known | ({} if made is None else shown(made)))
        return
    click.echo(f"{verb} {name}")
    if known:
        click.echo(f"password: {password}")
    if made is not None:
        tell(made)
