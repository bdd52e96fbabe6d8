"""What nodes let no gateway do by itself, a caller does in person: they are asked over a connection that logs
in as the caller, with the password that came along with the request.

P1 Nodes decide by the caller's own rights, not by the gateway's, and write the caller into their audit log.
   Whoever breaks into a gateway can do this for those who show it their password meanwhile, for nobody else.
P2 The password serves for one connection, which ends with the request. It is neither kept nor logged.
P3 Before a node hears of it the password was found right as that of any caller, with the same bounds and
   pauses for who guesses (`security/credentials.py`), and the caller's rights were asked here, too: only here
   the caller's address is known.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

from aiohttp import BasicAuth, hdrs, web

from postroad.client.client import Client
from postroad.client.login import Credentials
from postroad.errors import SaslAuthenticationFailed
from postroad.gateway.rest import problems
from postroad.gateway.rest.endpoint import Call
from postroad.gateway.rest.problems import FORBIDDEN, Refused
from postroad.gateway.security.access import UserAccess

CLIENT_ID: Final = "postroad-gateway-caller"
NO_STORE: Final[dict[str, str]] = {hdrs.CACHE_CONTROL: "no-store"}  # for answers with a secret
NEEDED: Final = (
    "Nodes let no gateway do this by itself: they are asked in your name, for which your password is needed. "
    "Send `Authorization: Basic` with your name and password."
)
OPEN_TEXT: Final = (
    "Security is off: there are no users and no rules. `postroad serve --secure` starts with them."
)


@contextlib.asynccontextmanager
async def in_person(call: Call[Any, Any]) -> AsyncIterator[Client]:
    """A connection to the cluster that is the caller's own. Raises Refused where the caller is no user, or
    has not shown a password; PostroadError."""
    gateway, access = call.gateway, call.access
    if gateway.identities.following is None:
        raise Refused(problems.REFUSED, OPEN_TEXT)
    name = access.principal.name if isinstance(access, UserAccess) else ""
    password = call.password or _basic_password(call.request, name)
    if not name or not password:
        raise Refused(FORBIDDEN, NEEDED)
    found = await gateway.identities.by_password(name, password, call.request.transport)
    if not isinstance(found, UserAccess) or found.principal.name != name:
        raise Refused(FORBIDDEN, f"That is not the password of {name}.")
    mechanism = await gateway.identities.mechanism(name)
    credentials = Credentials(name, password, mechanism)
    client = Client(gateway.settings.bootstrap, client_id=CLIENT_ID, credentials=credentials)
    try:
        async with client:
            yield client
    except SaslAuthenticationFailed:
        raise Refused(FORBIDDEN, f"The nodes don't take this password of {name}.") from None


@contextlib.asynccontextmanager
async def as_caller(call: Call[Any, Any]) -> AsyncIterator[Client]:
    """The same where users are asked for; elsewhere the gateway's own connection."""
    if not call.access.is_guarded:
        yield call.gateway.client
        return
    async with in_person(call) as client:
        yield client


def note(call: Call[Any, Any], event: str, **facts: object) -> None:
    """A line for the audit log. Nodes write one as well, but see only the gateway's address."""
    call.gateway.identities.note_change(call.access, event, **facts)


def _basic_password(request: web.Request, name: str) -> str:
    """What the request shows as the password of this user; empty: nothing."""
    try:
        shown = BasicAuth.decode(request.headers.get(hdrs.AUTHORIZATION, ""), encoding="utf-8")
    except ValueError:
        return ""
    return shown.password if shown.login == name else ""
