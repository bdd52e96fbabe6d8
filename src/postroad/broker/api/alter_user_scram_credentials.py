"""AlterUserScramCredentials (51), version 0: passwords of users are set and deleted.

The client sends the password salted and hashed, never as it is; of that what checks it is kept. All
changes of a
user are one commit. A user's open connections end when the password that they logged in with does.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.api.describe_user_scram_credentials import MECHANISMS
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSecurity, HasTopics
from postroad.cluster.keys import ScramValue
from postroad.cluster.users import change_user
from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    DuplicateResource,
    SecurityDisabled,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from postroad.security import scram
from postroad.security.principals import check_user_name
from postroad.security.resources import Operation
from postroad.wire.messages import alter_user_scram_credentials as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.ALTER)

HASH_BYTES: Final = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}


class Uses(HasSecurity, HasTopics, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _alter_all(node, call, codec.decode_request(call.body, call.version), call.version)


async def _alter_all(
    node: Uses, call: Call, request: codec.AlterUserScramCredentialsRequest, version: int
) -> bytes:
    named = _named(request)
    times = Counter(named)
    results = []
    for name in dict.fromkeys(name for name, _ in named):
        result = codec.AlterUserScramCredentialsResult(name)
        try:
            if any(count > 1 for (user, _), count in times.items() if user == name):
                raise DuplicateResource()
            with node.security.answered_first(call.connection):
                await _alter(node, name, request)
        except ApiError as error:
            result.error_code, result.error_message = error.code, str(error)
        else:
            node.security.note("user altered", call.connection, user=name)
        results.append(result)
    return codec.encode_response(codec.AlterUserScramCredentialsResponse(results=results), version)


def _named(request: codec.AlterUserScramCredentialsRequest) -> list[tuple[str, int]]:
    """(user, mechanism) of every change."""
    deleted = [(change.name, change.mechanism) for change in request.deletions]
    return deleted + [(change.name, change.mechanism) for change in request.upsertions]


async def _alter(node: Uses, name: str, request: codec.AlterUserScramCredentialsRequest) -> None:
    if not node.security.enabled:
        raise SecurityDisabled()
    check_user_name(name)
    deleted = [_mechanism(change.mechanism) for change in request.deletions if change.name == name]
    put = {
        _mechanism(change.mechanism): _verifier(change)
        for change in request.upsertions
        if change.name == name
    }
    await node.topics.decide(
        partial(change_user, name=name, put=put, deleted=deleted),
        done=lambda image: _is_done(image.users.get(name), put, deleted),
    )


def _is_done(user: object, put: dict[str, ScramValue], deleted: list[str]) -> bool:
    scram_of = getattr(user, "scram", {})
    return all(scram_of.get(name) == value for name, value in put.items()) and not any(
        name in scram_of for name in deleted
    )


def _mechanism(number: int) -> str:
    if number not in MECHANISMS:
        raise UnsupportedSaslMechanism(f"There is no SCRAM mechanism {number}: 1 is SHA-256, 2 is SHA-512.")
    return MECHANISMS[number]


def _verifier(change: codec.ScramCredentialUpsertion) -> ScramValue:
    mechanism = _mechanism(change.mechanism)
    if not scram.ITERATIONS_MIN <= change.iterations <= scram.ITERATIONS_MAX:
        raise UnacceptableCredential(
            f"A password is hashed {scram.ITERATIONS_MIN} to {scram.ITERATIONS_MAX} times."
        )
    if not 0 < len(change.salt) <= scram.SALT_BYTES_MAX:
        raise UnacceptableCredential(f"A salt has 1 to {scram.SALT_BYTES_MAX} bytes.")
    if len(change.salted_password) != HASH_BYTES[mechanism]:
        raise UnacceptableCredential(f"{mechanism}: a salted password has {HASH_BYTES[mechanism]} bytes.")
    salt, salted = bytes(change.salt), bytes(change.salted_password)
    return ScramValue(*scram.verifier_of_salted(mechanism, salted, salt, change.iterations)[1:])


def refuse(_: object, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    error = ClusterAuthorizationFailed()
    names = dict.fromkeys(name for name, _ in _named(request))
    results = [codec.AlterUserScramCredentialsResult(name, error.code, str(error)) for name in names]
    return codec.encode_response(codec.AlterUserScramCredentialsResponse(results=results), call.version)
