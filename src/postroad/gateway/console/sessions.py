"""Browsers: who somebody at a page is, and that a form comes from a page that was made for them.

    kind . issued (s) . nonce . name (hex) . proof (hex) . seal (hex)

is the cookie, sealed by an HMAC with a key that all gateways of a cluster share: nothing is stored, and any
of them knows the browser again.

B1 Kinds: `open`, where nobody is asked who they are; `user`, by a password of the nodes' user; `key`, by an
   access key of the settings. The proof is an HMAC of what was shown (the password's mark, the secret), so a
   session is void as soon as the password is another one, or the user or the key is gone.
B2 The cookie can't be read by scripts, and browsers send it from our own pages only; over TLS only, where
   the page came so. Its name has the cluster's in it: browsers don't keep the ports of one machine apart.
B3 A form's token is made from the nonce, which only who has the cookie could know.
B4 A login lasts `LASTS_S`, whatever happens.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from typing import Final, NamedTuple

from aiohttp import hdrs, web

from postroad.gateway.gateway import Gateway
from postroad.gateway.security.access import OPEN, Access, UserAccess

OPEN_KIND: Final = "open"
USER_KIND: Final = "user"
KEY_KIND: Final = "key"
LASTS_S: Final = 12 * 60 * 60
NONCE_BYTES: Final = 16
SEAL_CHARACTERS: Final = 32
COOKIE_CHARACTERS_MAX: Final = 2000
PURPOSE: Final = b"console"


class Cookie(NamedTuple):
    kind: str
    issued_s: int
    nonce: str
    name: str = ""
    proof: str = ""


class Visitor(NamedTuple):
    """Somebody at a page. `cookie` is to be set, if there is one; `name` is empty where nobody is asked."""

    access: Access
    name: str
    token: str
    cookie: str | None = None
    may_leave: bool = False  # there is something to log out of


class Browsers:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def cookie_name(self) -> str:
        of_cluster = hashlib.sha256(self._gateway.cluster_id.encode()).hexdigest()[:8]
        return f"postroad-console-{of_cluster}"

    async def visitor(self, request: web.Request) -> Visitor | None:
        """None: whoever it is has to log in. Raises PostroadError where nodes have to be asked and can't
        be."""
        identities = self._gateway.identities
        shown = self._read(request.cookies.get(self.cookie_name, ""))
        if not identities.required:
            return self._visitor(OPEN, "", shown)
        header = request.headers.get(hdrs.AUTHORIZATION, "")
        access = await identities.by_header(header, request.transport)
        if access is not None:
            return self._visitor(access, name_of(access), shown)
        if shown is None or shown.kind == OPEN_KIND:
            return None
        access = await self._of_cookie(shown, request)
        return None if access is None else self._visitor(access, shown.name, shown, may_leave=True)

    def stranger(self, request: web.Request) -> Visitor:
        """Somebody who is about to log in: for that form there is a token, too."""
        shown = self._read(request.cookies.get(self.cookie_name, ""))
        return self._visitor(OPEN, "", shown)

    async def login(self, request: web.Request, name: str, secret: str) -> str | None:
        """The cookie for who has shown a right name and secret. Raises PostroadError."""
        identities = self._gateway.identities
        access = await identities.by_password(name, secret, request.transport)
        if access is None:
            return None
        if identities.keys.check(name, secret) is not None:
            return self._new(KEY_KIND, name, secret.encode(errors="surrogateescape"))
        assert isinstance(access, UserAccess), "who is no key is a user"
        return self._new(USER_KIND, name, access.session.mark)

    def is_right(self, visitor: Visitor, token: str) -> bool:
        return hmac.compare_digest(visitor.token.encode(), token.encode(errors="replace"))

    def put(self, response: web.StreamResponse, request: web.Request, value: str) -> None:
        """B2. An empty value takes the cookie away."""
        is_secure = request.scheme == "https" or self._gateway.http.url.startswith("https:")
        response.set_cookie(
            self.cookie_name, value, path="/console", httponly=True, samesite="Strict", secure=is_secure,
            max_age=None if value else 0,
        )  # fmt: skip

    # --- cookies

    async def _of_cookie(self, shown: Cookie, request: web.Request) -> Access | None:
        if not 0 <= time.time() - shown.issued_s < LASTS_S:
            return None
        identities = self._gateway.identities
        if shown.kind == KEY_KIND:
            key = identities.keys.find(shown.name)
            if key is None or self._proof(shown.name, key.secret.encode()) != shown.proof:
                return None
            return identities.of_key(key, request.transport)
        return await identities.of_mark(
            shown.name,
            lambda mark: hmac.compare_digest(self._proof(shown.name, mark), shown.proof),
            request.transport,
        )

    def _visitor(self, access: Access, name: str, shown: Cookie | None, may_leave: bool = False) -> Visitor:
        if shown is not None:
            return Visitor(access, name, self._hmac("form", shown.nonce), None, may_leave)
        cookie = self._new(OPEN_KIND, "", b"")
        read = self._read(cookie)
        assert read is not None, "it was written a moment ago"
        return Visitor(access, name, self._hmac("form", read.nonce), cookie, may_leave)

    def _new(self, kind: str, name: str, shown: bytes) -> str:
        proof = self._proof(name, shown) if shown else ""
        nonce = os.urandom(NONCE_BYTES).hex()
        body = f"{kind}.{int(time.time())}.{nonce}.{name.encode().hex()}.{proof}"
        return f"{body}.{self._hmac('session', body)}"

    def _read(self, text: str) -> Cookie | None:
        """None: it is none of ours."""
        body, _, seal = text.rpartition(".")
        if len(text) > COOKIE_CHARACTERS_MAX or not text.isascii():
            return None
        if not hmac.compare_digest(seal, self._hmac("session", body)):
            return None
        kind, issued_s, nonce, name, proof = body.split(".")
        return Cookie(kind, int(issued_s), nonce, bytes.fromhex(name).decode(), proof)

    def _proof(self, name: str, shown: bytes) -> str:
        return self._hmac("proof", f"{name.encode().hex()}.{shown.hex()}")

    def _hmac(self, purpose: str, text: str) -> str:
        key = self._gateway.receipts.derived_key(PURPOSE)
        return hmac.new(key, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()[:SEAL_CHARACTERS]


def name_of(access: Access) -> str:
    return access.principal.name if isinstance(access, UserAccess) else access.owner.partition(":")[2]
