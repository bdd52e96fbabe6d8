"""What callers show, checked at the nodes and remembered for a while: signatures' keys and passwords.

C1 No secret of a user is here: a signing key is good for its day, region and service; of a password a
   keyed hash is remembered, the key of which is random and this process's own.
C2 A password is never sent to a node: what is sent shows that it is known (RFC 5802). A token is: only nodes
   know its issuer's keys.
C3 Hashing a password takes milliseconds, so it is done in a thread; at most `CHECKS_MAX` wait for it, of one
   address `CHECKS_OF_ADDRESS_MAX`. Who is refused is told so after `FAILURE_S`.
C4 What is remembered ends with its session: with the password, the key, the user, or the token's time.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from postroad.client.client import Client
from postroad.errors import CoordinatorNotAvailable, by_code
from postroad.gateway.security.sessions import Session, Sessions
from postroad.security import scram
from postroad.security.principals import NAME_CHARACTERS_MAX
from postroad.security.sasl import PASSWORD_CHARACTERS_MAX, TOKEN_BYTES_MAX, failure_pause_s
from postroad.system.workers import Threads
from postroad.wire import callers as api

FRESH_S: Final = 60.0  # a password is checked again after this time
KEY_FRESH_S: Final = 300.0
REMEMBERED_MAX: Final = 10_000
CHECKS_MAX: Final = 64
CHECKS_OF_ADDRESS_MAX: Final = 16
NONCE_BYTES: Final = 24
SERVICE: Final = "sqs"

V = TypeVar("V")


class SigningKey(NamedTuple):
    """What requests of an access key are signed with, on one day and in one region."""

    session: Session
    key: bytes


class Scope(NamedTuple):
    key_id: str
    day: str
    region: str


class Remembered(Generic[V]):
    """The newest answers, for `fresh_s`. Callers at the same time share one question."""

    def __init__(self, fresh_s: float, session_of: Callable[[V], Session]) -> None:
        self._fresh_s = fresh_s
        self._session_of = session_of
        self._known: dict[Hashable, tuple[float, V]] = {}
        self._asking: dict[Hashable, asyncio.Future[V | None]] = {}

    def known(self, about: Hashable) -> V | None:
        entry = self._known.get(about)
        if entry is None:
            return None
        until, found = entry
        if asyncio.get_running_loop().time() < until and not self._session_of(found).has_ended:
            return found
        del self._known[about]
        return None

    async def find(self, about: Hashable, ask: Callable[[], Awaitable[V | None]]) -> V | None:
        found = self.known(about)
        if found is not None:
            return found
        asking = self._asking.get(about)
        if asking is None:
            asking = self._asking[about] = asyncio.ensure_future(ask())
            asking.add_done_callback(lambda done: self._asked(about, done))
        return await asyncio.shield(asking)

    def _asked(self, about: Hashable, asking: asyncio.Future[V | None]) -> None:
        del self._asking[about]
        if asking.cancelled() or asking.exception() is not None:
            return
        found = asking.result()
        if found is None:
            return
        while len(self._known) >= REMEMBERED_MAX:
            del self._known[next(iter(self._known))]
        self._known[about] = asyncio.get_running_loop().time() + self._fresh_s, found


class Credentials:
    def __init__(self, client: Client, sessions: Sessions) -> None:
        self._client = client
        self._sessions = sessions
        self._secret = os.urandom(32)  # C1
        self._hashers: Threads | None = None
        self._signing_keys: Remembered[SigningKey] = Remembered(KEY_FRESH_S, lambda found: found.session)
        self._passwords: Remembered[Session] = Remembered(FRESH_S, lambda session: session)
        self._tokens: Remembered[Session] = Remembered(FRESH_S, lambda session: session)
        self._checks: Counter[str] = Counter()  # by address

    def close(self) -> None:
        if self._hashers is not None:
            self._hashers.close()

    # --- signatures

    def known_signing_key(self, scope: Scope) -> SigningKey | None:
        """If no node has to be asked."""
        return self._signing_keys.known(scope)

    async def signing_key(self, scope: Scope) -> SigningKey | None:
        """None: there is no such key, or it is disabled. Raises PostroadError."""
        return await self._signing_keys.find(scope, lambda: self._find_signing_key(scope))

    async def _find_signing_key(self, scope: Scope) -> SigningKey | None:
        answer = await self._ask(api.FindSigningKey(*scope, SERVICE))
        if not answer.user:
            return None
        session = self._sessions.add(Session(answer.user, key_id=scope.key_id))
        return SigningKey(session, answer.signing_key)

    # --- passwords

    def known_password(self, user: str, password: str) -> Session | None:
        """If it was found right a moment ago."""
        return self._passwords.known(self._digest(user, password))

    async def password(self, user: str, password: str, host: str) -> Session | None:
        """None: it is wrong, or there is no such user; told after a while. Raises PostroadError."""
        if not 0 < len(user) <= NAME_CHARACTERS_MAX or not 0 < len(password) <= PASSWORD_CHARACTERS_MAX:
            return None
        try:
            f"{user}{password}".encode()
        except UnicodeEncodeError:
            return None
        digest = self._digest(user, password)
        session = self._passwords.known(digest)
        if session is None:
            session = await self._passwords.find(
                digest, lambda: self._checked(host, lambda: self._prove(user, password))
            )
        return session

    async def mechanism(self, user: str) -> str:
        """In which a password of this user is checked. Raises PostroadError."""
        return (await self._ask(api.FindSalt(user))).mechanism

    async def of_mark(self, user: str, is_shown: Callable[[bytes], bool]) -> Session | None:
        """The session of a password that was right when its mark was told; None: it is no longer the
        user's. Raises PostroadError."""
        session = self._sessions.find(user, is_shown)
        if session is not None:
            return session
        answer = await self._ask(api.FollowRules(users=[user]))
        standing = answer.users.get(user)
        mark = None if standing is None else next(filter(is_shown, standing.passwords), None)
        return None if mark is None else self._sessions.add(Session(user, mark=mark))

    # --- tokens

    def known_token(self, token: str) -> Session | None:
        """If it was found right a moment ago."""
        return self._tokens.known(self._digest("", token))

    async def token(self, token: str, host: str) -> Session | None:
        """None: it is nobody's, or has expired; told after a while. Raises PostroadError."""
        if not 0 < len(token) <= TOKEN_BYTES_MAX or not token.isascii():
            return None
        return await self._tokens.find(
            self._digest("", token), lambda: self._checked(host, lambda: self._read_token(token))
        )

    async def _read_token(self, token: str) -> Session | None:
        answer = await self._ask(api.ReadToken(token))
        return Session(answer.user, lasts_s=answer.lasts_s) if answer.user else None

    # --- helpers

    async def _checked(self, host: str, check: Callable[[], Awaitable[Session | None]]) -> Session | None:
        """C3. How long a failure takes says nothing about why: it is told at a multiple of `FAILURE_S`."""
        if self._checks.total() >= CHECKS_MAX or self._checks[host] >= CHECKS_OF_ADDRESS_MAX:
            raise CoordinatorNotAvailable("Too many passwords are being checked: try again.")
        self._checks[host] += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            session = await check()
            if session is None:
                await asyncio.sleep(failure_pause_s(loop.time() - began))
            return session
        finally:
            self._checks[host] -= 1
            if not self._checks[host]:
                del self._checks[host]

    async def _prove(self, user: str, password: str) -> Session | None:
        how = await self._ask(api.FindSalt(user))
        if how.mechanism not in scram.HASHES or how.iterations > scram.ITERATIONS_MAX:
            return None
        salted = await self._hashing(
            lambda: scram.salted_password(how.mechanism, password, how.salt, how.iterations)
        )
        message = f"postroad-gateway,n={scram.encode_name(user)},r={os.urandom(NONCE_BYTES).hex()}".encode()
        proof = scram.client_proof(how.mechanism, salted, message)
        answer = await self._ask(api.CheckProof(user, how.mechanism, message, proof))
        if answer.user != user:
            return None
        return self._sessions.add(Session(user, mark=answer.mark))

    async def _hashing(self, job: Callable[[], bytes]) -> bytes:
        if self._hashers is None:
            self._hashers = Threads(asyncio.get_running_loop(), 1, "passwords")
        hashed: bytes = await self._hashers.call(job)
        return hashed

    def _digest(self, user: str, password: str) -> bytes:
        text = f"{len(user)}:{user}{password}".encode(errors="surrogatepass")
        return hmac.digest(self._secret, text, "sha256")

    async def _ask(self, question: Any) -> api.CallersAnswer:
        async def attempt() -> api.CallersAnswer:
            answer: api.CallersAnswer = await self._client.call(api, question, version=api.MAX_VERSION)
            if answer.error_code:
                raise by_code(answer.error_code, answer.error_message)
            return answer

        return await self._client.retry(attempt, timeout_s=10.0)
