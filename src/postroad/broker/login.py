"""`Login`: one connection's way from nobody to somebody, and what it may do meanwhile.

Before login a connection may ask for versions (18) and log in (17, 36), in small frames, for some seconds.
One that has failed may do nothing any more. After login it goes on until its session ends, where sessions
have an end (KIP-368): then the same user logs in again on the same connection, or the next request closes it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from postroad.errors import (
    IllegalSaslState,
    ProtocolError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from postroad.security.sasl import PasswordCheck, ServerExchange
from postroad.security.scram import Verifier

if TYPE_CHECKING:
    from postroad.broker.connection import Connection
    from postroad.broker.security import Security
    from postroad.config.security import Security as SecuritySettings

FRAME_BYTES_MAX: Final = 64 * 1024
FAILURE_S: Final = 0.1  # a wrong password is answered after this time, whoever tries how many
SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
BEFORE_LOGIN: Final = (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)


class Login:
    __slots__ = (
        "_connection",
        "_ends_at",
        "_exchange",
        "_failed",
        "_frame_bytes_max",
        "_loop",
        "_mechanism",
        "_security",
        "_session_ms",
        "began",
        "done",
        "login_ms",
        "user",
        "verifier",
    )

    def __init__(
        self,
        security: Security,
        connection: Connection,
        settings: SecuritySettings,
        loop: asyncio.AbstractEventLoop,
        *,
        is_known: bool = False,
    ) -> None:
        """`is_known`: a certificate has said who the peer is; it may log in as somebody else."""
        self.user: str | None = None  # None: nobody has logged in
        self.verifier: Verifier | None = None  # with which the user's password was checked
        self.done = is_known
        self.began = loop.time()
        self.login_ms = settings.login_ms
        self._security = security
        self._connection = connection
        self._session_ms = settings.session_ms
        self._loop = loop
        self._exchange: ServerExchange | None = None
        self._mechanism = ""
        self._failed = False
        self._ends_at: float | None = None  # when the session ends
        self._frame_bytes_max = connection.frames.frame_bytes_max
        if not is_known:
            connection.frames.frame_bytes_max = min(FRAME_BYTES_MAX, self._frame_bytes_max)

    @property
    def is_overdue(self) -> bool:
        return not self.done and (self._loop.time() - self.began) * 1000 > self.login_ms

    def admit(self, key: int) -> None:
        """Raises ProtocolError unless the connection may send this request now."""
        if self._failed:
            raise ProtocolError("its login has failed")
        if key in BEFORE_LOGIN:
            return
        if not self.done:
            raise ProtocolError("it has not logged in")
        if self._ends_at is not None and self._loop.time() > self._ends_at:
            raise ProtocolError("its session has ended")

    def begin(self, mechanism: str) -> None:
        """Raises UnsupportedSaslMechanism where that is not offered."""
        if mechanism not in self._security.mechanisms(self._connection):
            raise UnsupportedSaslMechanism()
        self._mechanism = mechanism
        self._exchange = self._security.exchange(mechanism)

    async def respond(self, message: bytes) -> bytes:
        """The next message of the exchange. Raises SaslAuthenticationFailed a while after it knows."""
        exchange = self._exchange
        if exchange is None:
            self._failed = True
            raise IllegalSaslState("Begin with SaslHandshake.")
        try:
            answer = await self._answer(exchange, message)
        except SaslAuthenticationFailed as error:
            self._failed = True
            tried = self._security.known_name(exchange.tried)
            self._security.note("login failed", self._connection, mechanism=self._mechanism, user=tried)
            await asyncio.sleep(FAILURE_S)
            raise error.with_traceback(None) from None
        return answer

    async def _answer(self, exchange: ServerExchange, message: bytes) -> bytes:
        answer = exchange.respond(message)
        if isinstance(answer, PasswordCheck):
            if not await self._security.passes(answer):
                raise SaslAuthenticationFailed()
            self._finish(answer.user, answer.verifier)
            return b""
        if exchange.user is not None:
            self._finish(exchange.user, self._security.verifier(self._mechanism, exchange.user))
        return answer

    def _finish(self, name: str, verifier: Verifier) -> None:
        if self.user not in (None, name):
            raise SaslAuthenticationFailed("A session goes on as the same user, not as another one.")
        self._exchange = None
        first = self.user is None
        self.user, self.verifier, self.done = name, verifier, True
        if first:
            self._connection.frames.frame_bytes_max = self._frame_bytes_max
            self._security.identify(self._connection, self._security.principal_of(name))
            self._security.note("login", self._connection, mechanism=self._mechanism)
        if self.session_ms:
            self._ends_at = self._loop.time() + self._session_ms / 1000
            self._loop.call_at(self._ends_at, self._close_short_ways)

    def _close_short_ways(self) -> None:
        """The session may have ended: the next request is looked at."""
        self._connection.allowed_produce = self._connection.allowed_fetch = 0

    @property
    def session_ms(self) -> int:
        """How long the session lasts; 0: without an end, as those within the cluster."""
        principal = self._connection.principal
        return 0 if principal.is_machine else self._session_ms
