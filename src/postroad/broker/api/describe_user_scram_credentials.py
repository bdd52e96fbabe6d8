"""DescribeUserScramCredentials (50), version 0: which users there are, and how they may log in."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage
from postroad.cluster.keys import UserValue
from postroad.errors import ApiError, ClusterAuthorizationFailed, DuplicateResource, ResourceNotFound
from postroad.security.resources import Operation
from postroad.wire.messages import describe_user_scram_credentials as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}  # Kafka's numbers


class Uses(HasImage, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    users = node.image.users
    times = Counter(wanted.name for wanted in request.users or ())
    names = list(times) or sorted(users)
    results = [_describe(name, users.get(name), times[name]) for name in names]
    return codec.encode_response(codec.DescribeUserScramCredentialsResponse(results=results), call.version)


def _describe(name: str, user: UserValue | None, times: int) -> codec.DescribeUserScramCredentialsResult:
    error: ApiError | None = None
    if times > 1:
        error = DuplicateResource()
    elif user is None:
        error = ResourceNotFound(f"There is no user {name!r}.")
    if user is None or error is not None:
        assert error is not None
        return codec.DescribeUserScramCredentialsResult(name, error.code, str(error))
    numbers = {mechanism: number for number, mechanism in MECHANISMS.items()}
    infos = [
        codec.CredentialInfo(numbers[mechanism], known.iterations)
        for mechanism, known in sorted(user.scram.items())
        if mechanism in numbers
    ]
    return codec.DescribeUserScramCredentialsResult(name, 0, None, infos)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    response = codec.DescribeUserScramCredentialsResponse(error_code=error.code, error_message=str(error))
    return codec.encode_response(response, call.version)
