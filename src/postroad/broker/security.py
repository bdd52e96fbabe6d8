"""`Security`: the cluster's users and rules on this node, and who its clients are.

It follows the coordination store and hands each connection its guard (`access.Guard`). `revision` rises
whenever something may have become allowed or forbidden: a short way that was open at one revision is closed
at another. Without `security.enabled` it stays 0, no connection has a guard, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.access import Guard
from postroad.broker.audit import Audit
from postroad.broker.fair_checks import FairChecks
from postroad.broker.login import Login
from postroad.broker.master_key_file import read_or_make
from postroad.broker.security_news import SecurityNews
from postroad.cluster import keys
from postroad.config.listeners import is_loopback
from postroad.errors import SaslAuthenticationFailed
from postroad.security import sasl, scram
from postroad.security.master_key import (
    GATEWAY_USER,
    NODE_USER,
    OPERATOR_USER,
    derive,
    machine_password,
)
from postroad.security.principals import (
    ANONYMOUS,
    GATEWAY,
    NODE,
    OPERATOR,
    Principal,
    user,
)
from postroad.security.resources import ResourcePattern
from postroad.security.rules import AclRule, Rules
from postroad.security.scram import Verifier
from postroad.security.strangers import Shape, Strangers

if TYPE_CHECKING:
    from postroad.broker.connection import Connection
    from postroad.broker.node import Node
    from postroad.broker.token_keys import TokenKeys
    from postroad.client.connection import LogIn
    from postroad.cluster.image import Changes
    from postroad.security.tokens import Token

MACHINES: Final = {NODE_USER: NODE, GATEWAY_USER: GATEWAY, OPERATOR_USER: OPERATOR}
MACHINE_MECHANISM: Final = sasl.SCRAM_SHA_256
READABLE: Final = (sasl.PLAIN, sasl.OAUTHBEARER)  # on its way, without TLS
MARK_BYTES: Final = 16
ENDED: Final = "its user was deleted, or has another password"


class Security:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._settings = settings = node.settings.security
        self.enabled = settings.enabled
        self.revision = 1 if settings.enabled else 0
        self.rules = Rules(settings.super_user_names, open_without_rules=settings.open_without_rules)
        self.rules.revision = self.revision
        self.master_key = b""
        self.news = SecurityNews("", self.revision)  # for gateways
        self._machines: dict[str, Verifier] = {}
        self._strangers = Strangers()
        self._checks = FairChecks(node.runtime.workers(1, "login")) if settings.enabled else None
        self._token_keys: TokenKeys | None = None  # None: nobody comes with a token

    def start(self) -> None:
        """Read the master key, or make it. Blocks on the disk. Raises ConfigurationError."""
        if not self.enabled:
            return
        runtime = self._node.runtime
        self.audit = Audit(self._node.loop)
        self.master_key = read_or_make(runtime.disk, self._node.settings, runtime.random.randbytes)
        self.news = SecurityNews(runtime.random.randbytes(16).hex(), self.revision)
        for name in MACHINES:
            salt = derive(self.master_key, "machine salt", name)[: scram.SALT_BYTES]
            password = machine_password(self.master_key, name)
            self._machines[name] = scram.make_verifier(
                MACHINE_MECHANISM, password, salt, scram.ITERATIONS_MIN
            )
        if self._settings.takes_tokens:
            from postroad.broker.token_keys import TokenKeys

            assert self._checks is not None
            self._token_keys = TokenKeys(self._settings, runtime, self._node.tasks, self._checks)
            self._node.tasks.start(self._token_keys.keep_current(), "keep-token-keys")

    def close(self) -> None:
        if self._checks is not None:
            self._checks.close()
        if hasattr(self, "audit"):
            self.audit.close()

    # --- following the store

    def changed(self, changes: Changes) -> None:
        """Called as soon as the image has changed."""
        if not self.enabled or not changes.security:
            return
        image = self._node.image
        for key in changes.security:
            kind, _, rest = key.partition("/")
            if kind == "acls":
                about = keys.read_acl_key(rest)
                self.rules.put(
                    ResourcePattern(*about), [AclRule(*_fields(acl)) for acl in image.acls.get(about, ())]
                )
            elif kind == "users":
                known = image.users.get(rest)
                self._strangers.note(rest, () if known is None else _shapes(known))
                self._end_sessions(rest)
        self.revision += 1
        self.rules.revision = self.revision
        self.news.note(self.revision, changes.security)

    def _end_sessions(self, name: str) -> None:
        """Whoever logged in with a password that is no more has to log in again."""
        for connection in list(self._node.listener.connections):
            login = connection.login
            if login is not None and login.user == name and not login.is_held and not self._holds(login):
                connection.close(ENDED)

    def _holds(self, login: Login) -> bool:
        """Whether what the user logged in with is good still."""
        return login.verifier is None or self.is_current(login.user or "", login.verifier)

    @contextmanager
    def answered_first(self, connection: Connection) -> Iterator[None]:
        """Whoever changes his own password hears that it is done before his connection ends."""
        login = connection.login
        if login is None:
            yield
            return
        login.is_held = True
        try:
            yield
        finally:
            login.is_held = False
            if not self._holds(login):
                connection.close_when_answered(ENDED)

    def is_current(self, name: str, verifier: Verifier) -> bool:
        """Whether the user's password is still the one that this checks."""
        return self.verifier(verifier.mechanism, name) == verifier

    # --- connections

    def admit(self, connection: Connection) -> None:
        """A connection was accepted: it has to log in, unless a certificate has said who the peer is."""
        if not self.enabled:
            return
        is_known = connection.principal != ANONYMOUS
        connection.login = Login(self, connection, self._settings, self._node.loop, is_known=is_known)
        if is_known:
            self.identify(connection, connection.principal)

    def identify(self, connection: Connection, principal: Principal) -> None:
        """From here on the connection's requests are the principal's."""
        connection.principal = principal
        host = _host(connection.peer)
        note = partial(self.audit.note, peer=connection.peer, principal=str(principal))
        connection.guard = Guard(principal, host, self.rules, self._node.image, note)
        connection.allowed_produce = connection.allowed_fetch = 0
        self._node.quotas.admit(connection)

    def mechanisms(self, connection: Connection) -> list[str]:
        """What is offered here: what sends a secret only where nobody on its way can read it."""
        local = self._settings.plain_on_loopback and is_loopback(_host(connection.peer).strip("[]"))
        may_plain = connection.encrypted or local
        return [name for name in self._settings.offered if may_plain or name not in READABLE]

    def exchange(self, mechanism: str) -> sasl.ServerExchange:
        if mechanism == sasl.PLAIN:
            return sasl.PlainServer(self.password_verifier)
        if mechanism == sasl.OAUTHBEARER:
            return sasl.BearerServer()
        nonce = self._node.runtime.random.randbytes(24).hex()
        return sasl.ScramServer(partial(self.verifier, mechanism), nonce)

    def verifier(self, mechanism: str, name: str) -> Verifier:
        """What the user's password is checked with; where there is none, something that nothing passes."""
        machine = self._machines.get(name)
        if machine is not None and machine.mechanism == mechanism:
            return machine
        return self.user_verifier(mechanism, name)

    def user_verifier(self, mechanism: str, name: str) -> Verifier:
        """The same of users alone: machines don't come by way of a gateway."""
        known = self._node.image.users.get(name)
        if known is not None and mechanism in known.scram:
            return _verifier(mechanism, known.scram[mechanism])
        return self._strangers.verifier(self.master_key, mechanism, name)

    def password_verifier(self, name: str) -> Verifier:
        """What a password is checked with where the client names no mechanism."""
        known = self._node.image.users.get(name)
        only_longer = known is not None and sasl.SCRAM_SHA_256 not in known.scram
        return self.verifier(sasl.SCRAM_SHA_512 if only_longer else sasl.SCRAM_SHA_256, name)

    def mark(self, mechanism: str, stored_key: bytes) -> bytes:
        """By which a gateway tells one password from another: it shows nothing of either."""
        return derive(self.master_key, "password mark", mechanism, stored_key.hex())[:MARK_BYTES]

    async def passes(self, check: sasl.PasswordCheck, peer: str) -> bool:
        """Hash the password, beside the loop."""
        assert self._checks is not None
        passes: bool = await self._checks.call(_host(peer), check.passes)
        return passes

    @property
    def takes_tokens(self) -> bool:
        return self._token_keys is not None

    async def read_token(self, token: str, peer: str) -> Token:
        """Whose token it is. Raises SaslAuthenticationFailed."""
        if self._token_keys is None:
            raise SaslAuthenticationFailed("No tokens are taken here.")
        return await self._token_keys.read(token, _host(peer))

    def log_in_as_node(self) -> LogIn | None:
        """How this node says to the others that it is one of them; None: nobody asks."""
        if not self.enabled:
            return None
        from postroad.client.login import Credentials, login  # a node without security needs no client

        password = machine_password(self.master_key, NODE_USER)
        return login(Credentials(NODE_USER, password, MACHINE_MECHANISM), self._node.runtime)

    def known_name(self, name: str) -> str:
        """The name of a user there is; others may be a password that was typed into the wrong field."""
        return name if name in self._node.image.users or name in MACHINES else "unknown"

    def principal_of(self, name: str) -> Principal:
        kind = MACHINES.get(name)
        return user(name) if kind is None else Principal(kind, name)

    def note(self, event: str, connection: Connection, **facts: object) -> None:
        """A line for the audit log, where it is asked who clients are."""
        if self.enabled:
            self.audit.note(event, connection.peer, str(connection.principal), **facts)


def _host(peer: str) -> str:
    return peer.rpartition(":")[0]


def _fields(acl: keys.AclValue) -> tuple[str, str, int, int]:
    return acl.principal, acl.host, acl.operation, acl.permission


def _verifier(mechanism: str, value: keys.ScramValue) -> Verifier:
    return Verifier(mechanism, value.salt, value.iterations, value.stored_key, value.server_key)


def _shapes(user: keys.UserValue) -> tuple[Shape, ...]:
    return tuple(Shape.of(name, value.iterations, value.salt) for name, value in user.scram.items())
