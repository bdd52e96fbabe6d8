"""Users of a cluster and their passwords, as an administrator sees them."""

from __future__ import annotations

from typing import Final, NamedTuple

from postroad.client.client import Client
from postroad.errors import by_code
from postroad.security import scram
from postroad.wire.messages import alter_user_scram_credentials, describe_user_scram_credentials

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}  # Kafka's numbers


class User(NamedTuple):
    name: str
    mechanisms: list[str]


async def list_users(client: Client) -> list[User]:
    request = describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None)
    answer = await client.ask(describe_user_scram_credentials, request)
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return [
        User(found.user, [MECHANISMS[info.mechanism] for info in found.credential_infos])
        for found in answer.results
    ]


async def set_password(client: Client, name: str, password: str) -> None:
    """The user has this password from now on; a user who is not there is made."""
    codec = alter_user_scram_credentials
    upsertions = []
    for number, mechanism in MECHANISMS.items():
        salt = client.runtime.random.randbytes(scram.SALT_BYTES)
        salted = scram.salted_password(mechanism, password, salt, scram.ITERATIONS)
        upsertions.append(codec.ScramCredentialUpsertion(name, number, scram.ITERATIONS, salt, salted))
    await _alter(client, codec.AlterUserScramCredentialsRequest(upsertions=upsertions))


async def delete_user(client: Client, user: User) -> None:
    codec = alter_user_scram_credentials
    numbers = [number for number, mechanism in MECHANISMS.items() if mechanism in user.mechanisms]
    deletions = [codec.ScramCredentialDeletion(user.name, number) for number in numbers]
    await _alter(client, codec.AlterUserScramCredentialsRequest(deletions=deletions))


async def _alter(
    client: Client, request: alter_user_scram_credentials.AlterUserScramCredentialsRequest
) -> None:
    answer = await client.ask(alter_user_scram_credentials, request)
    for result in answer.results:
        if result.error_code:
            raise by_code(result.error_code, result.error_message)
