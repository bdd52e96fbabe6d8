"""Users over REST, changed: made and deleted, with passwords and access keys. Nodes are asked as the caller.

What is secret is in one answer, once; nothing keeps it.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from postroad.client import access_keys, users
from postroad.client.client import Client
from postroad.client.users import User
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import USER_MAX
from postroad.gateway.rest.in_person import NO_STORE, in_person, note
from postroad.gateway.rest.problems import CONFLICT, NOT_FOUND, REFUSED, Refused
from postroad.gateway.security.rights import ALTER, Rights
from postroad.security.sasl import PASSWORD_CHARACTERS_MAX

CHANGES: Final = Rights(cluster=ALTER)
PASSWORD_BYTES: Final = 24  # of chance, in a password that is made up here

Password = Annotated[
    Annotated[
        str,
        Meta(
            min_length=1,
            max_length=PASSWORD_CHARACTERS_MAX,
            extra_json_schema={"format": "password", "writeOnly": True},
        ),
    ]
    | None,
    Meta(description="Default: one is made up, and is in the answer."),
]


class NewUser(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=USER_MAX)]
    password: Password = None
    access_key: Annotated[bool, Meta(description="Whether the user gets one, for SQS.")] = True


class NewPassword(Struct, forbid_unknown_fields=True):
    password: Password = None


class UserSecrets(Struct, kw_only=True):
    """What is shown once. `password` is null if it was given, the key if there is none."""

    name: str
    password: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None


@endpoint(
    "POST", "/v1/users", "Create a user.", CHANGES, status=201, problems=(CONFLICT, REFUSED),
)  # fmt: skip
async def create_user(call: Call[NewUser, Nothing]) -> UserSecrets | EndpointAnswer:
    """Who may do nothing until rules say what. Password and access key are told in this answer only. Nodes
    are asked in the caller's own name, so it takes the caller's password (`Authorization: Basic`)."""
    name, given = call.body.name, call.body.password
    password = given or _made_up()
    key = None
    async with in_person(call) as client:
        if await _find(client, name) is not None:
            raise Refused(CONFLICT, f"There is a user {name!r}. Another password is given at /password.")
        await users.set_password(client, name, password)
        note(call, "user altered", user=name)
        if call.body.access_key:
            key = await access_keys.create(client, name)
            note(call, "access key created", user=name, key=key.id)
    return EndpointAnswer(
        UserSecrets(
            name=name,
            password=None if given else password,
            access_key_id=None if key is None else key.id,
            secret_access_key=None if key is None else key.secret,
        ),
        headers=NO_STORE,
    )


@endpoint(
    "POST", "/v1/users/{user}/password", "Give a user another password.", CHANGES,
    problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def change_password(call: Call[NewPassword, Nothing]) -> UserSecrets | EndpointAnswer:
    """What was let in by the old one ends: connections, sessions of the console, streams. As to the caller's
    password, see creating users."""
    given = call.body.password
    password = given or _made_up()
    async with in_person(call) as client:
        user = await _existing(call, client)
        await users.set_password(client, user.name, password)
        note(call, "user altered", user=user.name)
    answer = UserSecrets(name=user.name, password=None if given else password)
    return EndpointAnswer(answer, headers=NO_STORE)


@endpoint("DELETE", "/v1/users/{user}", "Delete a user.", CHANGES, status=204, problems=(NOT_FOUND, REFUSED))
async def delete_user(call: Call[Nothing, Nothing]) -> None:
    """With all access keys; connections of the user end. ACLs stay. As to the caller's password, see creating
    users."""
    async with in_person(call) as client:
        user = await _existing(call, client)
        await users.delete_user(client, user)
        note(call, "user altered", user=user.name)


@endpoint(
    "POST", "/v1/users/{user}/keys", "Give a user one more access key.", CHANGES, status=201,
    problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def create_key(call: Call[Nothing, Nothing]) -> UserSecrets | EndpointAnswer:
    """The secret is told in this answer only. As to the caller's password, see creating users."""
    async with in_person(call) as client:
        user = await _existing(call, client)
        key = await access_keys.create(client, user.name)
        note(call, "access key created", user=user.name, key=key.id)
    answer = UserSecrets(name=user.name, access_key_id=key.id, secret_access_key=key.secret)
    return EndpointAnswer(answer, headers=NO_STORE)


@endpoint("POST", "/v1/access-keys/{key}/disable", "Disable an access key.", CHANGES, status=204,
          problems=(REFUSED,))  # fmt: skip
async def disable_key(call: Call[Nothing, Nothing]) -> None:
    """What is signed with it is refused, until it is enabled again. As to the caller's password, see creating
    users."""
    await _enable(call, enabled=False)


@endpoint("POST", "/v1/access-keys/{key}/enable", "Enable an access key again.", CHANGES, status=204,
          problems=(REFUSED,))  # fmt: skip
async def enable_key(call: Call[Nothing, Nothing]) -> None:
    """As to the caller's password, see creating users."""
    await _enable(call, enabled=True)


@endpoint("DELETE", "/v1/access-keys/{key}", "Delete an access key.", CHANGES, status=204,
          problems=(REFUSED,))  # fmt: skip
async def delete_key(call: Call[Nothing, Nothing]) -> None:
    """For good. As to the caller's password, see creating users."""
    key_id = call.path["key"]
    async with in_person(call) as client:
        await access_keys.delete(client, key_id)
        note(call, "access key deleted", key=key_id)


async def _enable(call: Call[Nothing, Nothing], *, enabled: bool) -> None:
    key_id = call.path["key"]
    async with in_person(call) as client:
        await access_keys.enable(client, key_id, enabled=enabled)
        note(call, f"access key {'enabled' if enabled else 'disabled'}", key=key_id)


async def _find(client: Client, name: str) -> User | None:
    return next((found for found in await users.list_users(client) if found.name == name), None)


async def _existing(call: Call[Any, Any], client: Client) -> User:
    name = call.path["user"]
    found = await _find(client, name)
    if found is None:
        raise Refused(NOT_FOUND, f"There is no user {name!r}.")
    return found


def _made_up() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)
