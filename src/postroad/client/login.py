"""How a client says who it is: SASL over a connection that has just been opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.errors import SaslAuthenticationFailed, UnsupportedSaslMechanism, by_code
from postroad.security.sasl import (
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ClientExchange,
    PlainClient,
    ScramClient,
)
from postroad.wire.messages import sasl_authenticate, sasl_handshake

if TYPE_CHECKING:
    from postroad.client.connection import Connection, LogIn
    from postroad.client.runtime import Runtime

NONCE_BYTES: Final = 24


class Credentials(NamedTuple):
    """A user with a password, and how it is shown."""

    user: str
    password: str
    mechanism: str = SCRAM_SHA_256

    def __repr__(self) -> str:
        return f"Credentials({self.user!r}, ...)"


def login(credentials: Credentials, runtime: Runtime) -> LogIn:
    """What `open_connection` takes."""

    async def log_in_now(connection: Connection, timeout_s: float) -> int:
        return await log_in(connection, credentials, runtime, timeout_s)

    return log_in_now


def exchange_of(credentials: Credentials, runtime: Runtime) -> ClientExchange:
    """Raises UnsupportedSaslMechanism where this client does not speak the mechanism."""
    user, password, mechanism = credentials
    if mechanism == PLAIN:
        return PlainClient(user, password)
    if mechanism not in (SCRAM_SHA_256, SCRAM_SHA_512):
        raise UnsupportedSaslMechanism(f"{mechanism}: use {SCRAM_SHA_256}, {SCRAM_SHA_512} or {PLAIN}.")
    return ScramClient(mechanism, user, password, runtime.random.randbytes(NONCE_BYTES).hex())


async def log_in(connection: Connection, credentials: Credentials, runtime: Runtime, timeout_s: float) -> int:
    """The connection's requests are the user's; how long for, in milliseconds (0: without an end).

    Raises SaslAuthenticationFailed, also where the server can't show that it knows the password.
    """
    exchange = exchange_of(credentials, runtime)
    begin = sasl_handshake.SaslHandshakeRequest(exchange.mechanism)
    answer = await connection.call(sasl_handshake, begin, timeout_s, version=1)
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "none"
        text = f"{connection.address} offers no {exchange.mechanism}, but {offered}."
        raise by_code(answer.error_code, text)
    message: bytes | None = exchange.begin()
    lifetime_ms = 0
    while message is not None:
        request = sasl_authenticate.SaslAuthenticateRequest(message)
        answer = await connection.call(sasl_authenticate, request, timeout_s)
        if answer.error_code == SaslAuthenticationFailed.code:
            raise SaslAuthenticationFailed(f"{connection.address}: {answer.error_message}")
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        lifetime_ms = answer.session_lifetime_ms
        message = exchange.respond(bytes(answer.auth_bytes))
    return lifetime_ms
