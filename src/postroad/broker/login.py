"""`Login`: one connection's way from nobody to somebody, and what it may do meanwhile.

Before login a connection may ask for versions (18) and log in (17, 36), in small frames, for some seconds.
One that has failed may do nothing any more. After login it goes on until its session ends, where sessions
have an end (KIP-368): then the same user logs in again on the same connection, or the next request closes it.

L1 One message of a login at a time: else one connection would try a thousand passwords at once.
L2 When a failure is told says nothing about why: the time is a multiple of `FAILURE_S`.
L3 What has been shown must still be right when the login ends: a password that is changed meanwhile is not.
L4 Before login little is kept for a peer: small frames, few answers that it has not read.
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
from postroad.security.principals import Principal, user
from postroad.security.sasl import OAUTHBEARER, PasswordCheck, ServerExchange, TokenCheck, failure_pause_s
from postroad.security.scram import Verifier

if TYPE_CHECKING:
    from postroad.broker.connection import Connection
    from postroad.broker.security import Security
    from postroad.config.security import Security as SecuritySettings

FRAME_BYTES_MAX: Final = 64 * 1024
UNREAD_BYTES_MAX: Final = 64 * 1024
TOKEN_SESSION_S_MAX: Final = 86_400.0  # whatever a token says
SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
BEFORE_LOGIN: Final = (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)


class Login:
    __slots__ = (
        "_busy",
        "_connection",
        "_end",
        "_exchange",
        "_failed",
        "_frame_bytes_max",
        "_has_ended",
        "_loop",
        "_mechanism",
        "_security",
        "_settings_ms",
        "_unread_bytes_max",
        "began",
        "done",
        "is_held",
        "is_open",
        "login_ms",
        "session_ms",
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
        self.verifier: Verifier | None = None  # with which the user's password was checked; None: by a token
        self.done = is_known
        self.is_open = is_known  # `admit` would refuse nothing now: logged in, and not at it again
        self.is_held = False  # the connection is owed an answer about its own password
        self.began = loop.time()
        self.login_ms = settings.login_ms
        self._security = security
        self._connection = connection
        self.session_ms = 0  # how long the session lasts; 0: without an end, as those within the cluster
        self._settings_ms = settings.session_ms
        self._loop = loop
        self._exchange: ServerExchange | None = None
        self._mechanism = ""
        self._failed = False
        self._busy = False  # a message is being looked at
        self._has_ended = False  # the session
        self._end: asyncio.TimerHandle | None = None
        self._frame_bytes_max = connection.frames.frame_bytes_max
        self._unread_bytes_max = connection.unread_bytes_max
        if not is_known:
            connection.frames.frame_bytes_max = min(FRAME_BYTES_MAX, self._frame_bytes_max)
            connection.unread_bytes_max = min(UNREAD_BYTES_MAX, self._unread_bytes_max)

    @property
    def is_overdue(self) -> bool:
        return not self.done and (self._loop.time() - self.began) * 1000 > self.login_ms

    def admit(self, key: int) -> None:
        """Raises ProtocolError unless the connection may send this request now."""
        if self._failed:
            raise ProtocolError("its login has failed")
        if key in BEFORE_LOGIN:
            if self._busy and key != API_VERSIONS:
                raise ProtocolError("it went on with its login before it was answered")
            return
        if not self.done:
            raise ProtocolError("it has not logged in")
        if self._has_ended:
            raise ProtocolError("its session has ended")

    def begin(self, mechanism: str) -> None:
        """Raises UnsupportedSaslMechanism where that is not offered."""
        if mechanism not in self._security.mechanisms(self._connection):
            raise UnsupportedSaslMechanism()
        self._mechanism = mechanism
        self._exchange = self._security.exchange(mechanism)

    def close(self) -> None:
        """The connection has ended."""
        if self._end is not None:
            self._end.cancel()

    def take_turn(self) -> None:
        """A message is there: no other is read until `respond` has answered it."""
        self._busy, self.is_open = True, False

    async def respond(self, message: bytes) -> bytes:
        """The next message of the exchange. Raises SaslAuthenticationFailed a while after it knows."""
        began, exchange = self._loop.time(), self._exchange
        try:
            if exchange is None:
                self._failed = True
                raise IllegalSaslState("Begin with SaslHandshake.")
            return await self._answer(exchange, message)
        except SaslAuthenticationFailed as error:
            self._failed = True
            tried = self._security.known_name(exchange.tried if exchange else "")
            self._security.note("login failed", self._connection, mechanism=self._mechanism, user=tried)
            await asyncio.sleep(failure_pause_s(self._loop.time() - began))
            raise error.with_traceback(None) from None
        finally:
            self._busy = False
            self.is_open = self.done and not self._failed and not self._has_ended

    async def _answer(self, exchange: ServerExchange, message: bytes) -> bytes:
        answer = exchange.respond(message)
        if isinstance(answer, PasswordCheck):
            self._exchange = None
            if not await self._security.passes(answer, self._connection.peer):
                raise SaslAuthenticationFailed()
            self._finish_with_password(answer.user, answer.verifier)
            return b""
        if isinstance(answer, TokenCheck):
            self._exchange = None
            token = await self._security.read_token(answer.token, self._connection.peer)
            self._finish(token.user, user(token.user), token.lasts_s)  # a user, whatever the name
            return b""
        if exchange.user is not None and exchange.verifier is not None:
            self._finish_with_password(exchange.user, exchange.verifier)
        return answer

    def _finish_with_password(self, name: str, verifier: Verifier) -> None:
        if not self._security.is_current(name, verifier):
            raise SaslAuthenticationFailed()
        self.verifier = verifier
        self._finish(name, self._security.principal_of(name))

    def _finish(self, name: str, principal: Principal, lasts_s: float = TOKEN_SESSION_S_MAX) -> None:
        if self.user not in (None, name):
            raise SaslAuthenticationFailed("A session goes on as the same user, not as another one.")
        self._exchange = None
        first = self.user is None
        self.user, self.done = name, True
        if first:
            self._connection.frames.frame_bytes_max = self._frame_bytes_max
            if self._connection.muting is None:  # which only who is known already can be
                self._connection.unread_bytes_max = self._unread_bytes_max
            self._security.identify(self._connection, principal)
            self._security.note("login", self._connection, mechanism=self._mechanism)
        self._begin_session(principal, lasts_s)

    def _begin_session(self, principal: Principal, lasts_s: float) -> None:
        """The session ends with the token that it began with, if not before."""
        self._has_ended = False
        if self._end is not None:
            self._end.cancel()
        self.session_ms = 0 if principal.is_machine else self._settings_ms
        if self._mechanism == OAUTHBEARER:
            token_ms = max(1, int(min(lasts_s, TOKEN_SESSION_S_MAX) * 1000))
            self.session_ms = min(self.session_ms or token_ms, token_ms)
        if self.session_ms:
            self._end = self._loop.call_later(self.session_ms / 1000, self._end_session)

    def _end_session(self) -> None:
        """The next request is looked at, and closes the connection unless it begins another login."""
        self._has_ended, self.is_open = True, False
        self._connection.allowed_produce = self._connection.allowed_fetch = 0
