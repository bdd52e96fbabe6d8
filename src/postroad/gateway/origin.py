"""Web pages from elsewhere may not use the gateway, though the browser that shows them can reach it.

A browser lets any page send simple requests anywhere, and show the user's stored password along with them.
What it adds to each tells us where the page is from:

1. `Origin`, if there is one, must be the address that the request went to, or that of `http.url`.
2. `Sec-Fetch-Site` must not say that another site has asked: images and links send no origin. (Browsers send
   it to loopback addresses and over TLS.)
3. `Host` must be one of our names where nobody is asked for a key: a page of a foreign name that was made to
   resolve to this machine after it was loaded (DNS rebinding) passes the first two. An address is no name, so
   it can't be made to.

4. What a browser asks for by GET must change nothing (`is_browser`): a link or an image of any page, or in a
   mail, gets through the first two where browsers don't send the second, or the user has clicked it.

Programs send neither of the first two, and in `Host` what they were told to connect to.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from postroad.config.sections import Http

HOST: Final = "host"
ORIGIN: Final = "origin"
FETCH_SITE: Final = "sec-fetch-site"
OURS: Final = frozenset({"same-origin", "none"})  # none: the user's own doing
ANY: Final = "*"
# Nobody can register them; the last two are what containers call the machine that they run on.
LOCAL_NAMES: Final = frozenset({"localhost", "host.docker.internal", "host.containers.internal"})
LOCAL_SUFFIX: Final = ".localhost"
REMEMBERED_MAX: Final = 1000

FROM_ELSEWHERE: Final = "Pages of other sites may not use this gateway."
FOREIGN_NAME: Final = "This gateway is not known by that name (Host). Its setting http.hosts can add it."


def is_browser(headers: Mapping[str, str]) -> bool:
    """Whether a browser sent it, as far as that can be told. A page can't make it look otherwise."""
    return FETCH_SITE in headers or headers.get("user-agent", "").startswith("Mozilla/")


class Visitors:
    """Who may come in, by what browsers tell. Made once; `refusal` is asked for every request."""

    def __init__(self, http: Http, keys_required: bool) -> None:
        names = {name.lower() for name in http.hosts.split(",") if name}
        own = urlsplit(http.url).netloc.lower()
        self._url_host = own
        self._any_host = ANY in names or not (names or (http.loopback and not keys_required))
        self._names = (names | LOCAL_NAMES | {http.host.lower(), _name_of(own)}) - {""}
        self._known: set[str] = set()  # values of Host that were found right

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Why the request must not be served; None if it may. Headers are looked up by lower-case names:
        aiohttp's find them in any case, and so must others have them."""
        host = headers.get(HOST)
        if host not in self._known and not self._is_ours(host):
            return FOREIGN_NAME
        origin = headers.get(ORIGIN)
        if origin is not None and not self._is_own_page(origin, host):
            return FROM_ELSEWHERE
        site = headers.get(FETCH_SITE)
        return None if site is None or site in OURS else FROM_ELSEWHERE

    def check(self, headers: Mapping[str, str]) -> None:
        """For pages without a format of their own. Raises HTTPForbidden."""
        if (refusal := self.refusal(headers)) is not None:
            raise web.HTTPForbidden(text=f"{refusal}\n")

    def _is_own_page(self, origin: str, host: str | None) -> bool:
        of_page = origin.partition("://")[2].lower()
        return bool(of_page) and of_page in ((host or "").lower(), self._url_host)

    def _is_ours(self, host: str | None) -> bool:
        """Without a Host it is no browser."""
        if self._any_host or host is None:
            return True
        name = _name_of(host.lower())
        if name not in self._names and not name.endswith(LOCAL_SUFFIX) and not _is_address(name):
            return False
        if len(self._known) < REMEMBERED_MAX:
            self._known.add(host)
        return True


def _name_of(host: str) -> str:
    """Without the port, and the dot that may end a name."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
