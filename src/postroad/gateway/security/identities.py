"""`Identities`: who a request is from, by its `Authorization` header or the certificate of its connection.

    Basic, user and password             the user, if a node finds the password right
    Basic or Bearer, id and secret       of `http.access_keys`: an admin's key may do everything; another one
                                         is the user called so
    a signature (SigV4, `sqs/sigv4.py`)  the user whose access key it is; keys of `http.access_keys` as above
    Bearer and a token                   the user whom the nodes' provider of tokens names
    nothing, but a client's certificate  the user that `tls.principal_rules` makes of its subject

What a request says of itself comes before what its connection says.
"""

from __future__ import annotations

import asyncio
import json
import logging
from asyncio import BaseTransport
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import BasicAuth

from postroad.client.client import Client
from postroad.config.access_keys import Key
from postroad.gateway.access import Keys
from postroad.gateway.security.access import ADMIN_KEY, OPEN, USER_KEY, Access, UserAccess
from postroad.gateway.security.credentials import Credentials, Scope, SigningKey
from postroad.gateway.security.following import Following
from postroad.gateway.security.sessions import Session, Sessions
from postroad.security.mapping_rules import MappingRules, subject_text
from postroad.security.principals import ANONYMOUS, NAME_CHARACTERS_MAX, Principal, user

KEY_KIND: Final = "AccessKey"  # of the settings; an owner's name begins so
ACCESSES_MAX: Final = 10_000  # remembered; then they begin anew
LINES_A_SECOND: Final = 20  # of the audit log
MAPPED: Final = "::ffff:"  # IPv4 within IPv6, as the kernel writes it
UNKNOWN: Final = "unknown"  # an address, where there is none

audit = logging.getLogger("postroad.audit")


class Identities:
    """Unless requests are to be users' keys of the settings are all that is asked for, if there are any."""

    def __init__(self, keys: Keys, are_users: bool = False, principal_rules: str = "DEFAULT") -> None:
        self.keys = keys
        self.are_users = are_users
        self.required = are_users or keys.required  # whether a request has to show something
        self.following: Following | None = None  # None: nobody is asked for a user, or not yet
        self._credentials: Credentials | None = None
        self._principal_rules = MappingRules.parse(principal_rules)
        self._accesses: dict[tuple[Session, str], UserAccess] = {}
        self._audit = _Audit()
        self._lasting: dict[str, Session] = {}  # of users whom nothing can be taken away from but rights

    async def follow(self, client: Client) -> None:
        """The rules are known when this returns, if there are any to know. Raises PostroadError."""
        if not self.are_users:
            return
        sessions = Sessions()
        following = Following(client, sessions)
        await following.start()
        self._credentials = Credentials(client, sessions)
        self.following = following

    async def close(self) -> None:
        if self.following is not None:
            await self.following.close()
        if self._credentials is not None:
            self._credentials.close()

    # --- by a header

    async def by_header(self, header: str, transport: BaseTransport | None) -> Access | None:
        """Who the request is from, by its Authorization, Basic or Bearer; None: that can't be told. Raises
        PostroadError where nodes have to be asked and can't be."""
        if not self.required:
            return OPEN
        if self.following is not None:
            self.following.check_current()
        if self.following is not None and self.following.takes_tokens and (token := _token(header)):
            return await self._by_token(token, transport)
        shown = _shown(header)
        if shown is not None:
            return await self._by_secret(*shown, transport)
        return None if header else self.by_certificate(transport)

    # --- in a browser

    async def by_password(self, name: str, secret: str, transport: BaseTransport | None) -> Access | None:
        """Who shows a name and a password, or an access key's id and secret; None: they are wrong. Raises
        PostroadError."""
        if self.following is not None:
            self.following.check_current()
        return await self._by_secret(name, secret, True, transport)

    async def of_mark(
        self, name: str, is_shown: Callable[[bytes], bool], transport: BaseTransport | None
    ) -> Access | None:
        """The user who was let in by a password whose mark is known, as long as it is the user's. Raises
        PostroadError."""
        if self._credentials is None or self.following is None:
            return None
        self.following.check_current()
        session = await self._credentials.of_mark(name, is_shown)
        return None if session is None else self._of_session(session, host_of(transport))

    async def mechanism(self, name: str) -> str:
        """In which way the user's password is shown to nodes. Raises PostroadError."""
        assert self._credentials is not None, "only users log in to nodes"
        return await self._credentials.mechanism(name)

    def note_change(self, access: Access, event: str, **facts: object) -> None:
        """A line for the audit log about what a user has changed in person."""
        assert isinstance(access, UserAccess), "only users change anything in person"
        self._audit.note_change(event, access.host, str(access.principal), facts)

    async def _by_secret(
        self, name: str, secret: str, may_be_user: bool, transport: BaseTransport | None
    ) -> Access | None:
        key = self.keys.check(name, secret)
        if key is not None:
            return self.of_key(key, transport)
        if self._credentials is None or not may_be_user:
            return None
        host = host_of(transport)
        session = self._credentials.known_password(name, secret)
        if session is None:
            session = await self._credentials.password(name, secret, host)
            self._audit.note("login" if session is not None else "login failed", name, host)
        return None if session is None else self._of_session(session, host)

    async def _by_token(self, token: str, transport: BaseTransport | None) -> Access | None:
        assert self._credentials is not None, "who follows rules can ask about callers"
        host = host_of(transport)
        session = self._credentials.known_token(token)
        if session is None:
            session = await self._credentials.token(token, host)
            name, event = ("", "login failed") if session is None else (session.user, "login")
            self._audit.note(event, name or UNKNOWN, host, "Bearer")
        return None if session is None else self._of_session(session, host)

    # --- by a signature

    def known_signing_key(self, scope: Scope) -> SigningKey | None:
        """If no node has to be asked."""
        return None if self._credentials is None else self._credentials.known_signing_key(scope)

    async def signing_key(self, scope: Scope) -> SigningKey | None:
        """None: there is none. Raises PostroadError."""
        return None if self._credentials is None else await self._credentials.signing_key(scope)

    def of_signing_key(self, found: SigningKey, transport: BaseTransport | None) -> Access:
        """What the owner of the key may do, whose request turned out to be signed with it."""
        return self._of_session(found.session, host_of(transport))

    def of_key(self, key: Key, transport: BaseTransport | None) -> Access:
        """What a key of the settings may do."""
        if self.following is None:
            return ADMIN_KEY if key.admin else USER_KEY
        if key.admin:
            return Access(owner=f"{KEY_KIND}:{key.id}")
        return self._of_session(self._lasting_session(key.id), host_of(transport))

    # --- by a certificate

    def by_certificate(self, transport: BaseTransport | None) -> Access | None:
        """Only certificates that a CA of `tls.ca` has signed get so far."""
        if self.following is None:
            return None
        certificate: Mapping[str, Any] = (transport and transport.get_extra_info("peercert")) or {}
        subject = subject_text(certificate.get("subject", ()))
        name = self._principal_rules.name(subject) if subject else None
        if not name or user(name) == ANONYMOUS:
            return None
        return self._of_session(self._lasting_session(name), host_of(transport))

    # --- by name

    def of_owner(self, owner: str) -> Access | None:
        """What somebody may do in whose name something goes on (`Access.owner`); None: nobody may."""
        if self.following is None:
            return OPEN
        kind, _, name = owner.partition(":")
        if kind == KEY_KIND:
            key = self.keys.find(name)
            return Access(owner=owner) if key is not None and key.admin else None
        if kind != user("").kind or not name:
            return None
        return self._of_session(self._lasting_session(name), UNKNOWN)

    # --- accesses

    def _of_session(self, session: Session, host: str) -> Access:
        assert self.following is not None, "who asks for users follows their rules"
        found = self._accesses.get((session, host))
        if found is None:
            if len(self._accesses) >= ACCESSES_MAX:
                self._accesses.clear()
            principal = Principal(*user(session.user))
            found = UserAccess(principal, host, self.following.rules, session)
            self._accesses[session, host] = found
        return found

    def _lasting_session(self, name: str) -> Session:
        session = self._lasting.get(name)
        if session is None:
            if len(self._lasting) >= ACCESSES_MAX:
                self._lasting.clear()
            session = self._lasting[name] = Session(name)
        return session


def host_of(transport: BaseTransport | None) -> str:
    """The address that a request comes from, as rules name it: an IPv4 one is written so, also where it comes
    by a socket for both (`::ffff:10.0.0.7`), or a DENY from it would not be met."""
    peer = None if transport is None else transport.get_extra_info("peername")
    return str(peer[0]).removeprefix(MAPPED) if peer else UNKNOWN


def _token(header: str) -> str:
    """A token that is no key of the settings, which has a colon in it; empty: none."""
    scheme, _, content = header.partition(" ")
    return "" if scheme.lower() != "bearer" or ":" in content else content.strip()


def _shown(header: str) -> tuple[str, str, bool] | None:
    """Name and secret, and whether they may be a user's password. None: they can't be read."""
    scheme, _, content = header.partition(" ")
    if scheme.lower() == "bearer":
        name, _, secret = content.strip().partition(":")
        return name, secret, False
    if scheme.lower() == "basic":
        try:
            basic = BasicAuth.decode(header, encoding="utf-8")
        except ValueError:
            return None
        return basic.login, basic.password, True
    return None


class _Audit:
    """Lines for the audit log, as nodes write them. Whoever guesses passwords can't fill the disk."""

    def __init__(self) -> None:
        self._second = 0
        self._said = 0

    @staticmethod
    def note_change(event: str, host: str, principal: str, facts: Mapping[str, object]) -> None:
        """Changes are never left out."""
        audit.info("%s", json.dumps({"event": event, "peer": host, "principal": principal, **facts}))

    def note(self, event: str, name: str, host: str, mechanism: str = "Basic") -> None:
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            if self._said > LINES_A_SECOND:
                left_out = {"event": "logins left out", "count": self._said - LINES_A_SECOND}
                audit.info("%s", json.dumps(left_out))
            self._second, self._said = second, 0
        self._said += 1
        if self._said <= LINES_A_SECOND:
            principal = str(user(name[:NAME_CHARACTERS_MAX]))
            line = {"event": event, "peer": host, "principal": principal, "mechanism": mechanism}
            audit.info("%s", json.dumps(line))
