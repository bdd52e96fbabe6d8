"""The page at /docs: what the OpenAPI document says, and a form for each endpoint to try it.

Three files beside this one, sent as they are: no build, nothing from elsewhere. The content security policy
lets the page load these and talk to this gateway, and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from aiohttp import web

from postroad.gateway.security import rights

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
FILES: Final = {
    "/docs": ("page.html", "text/html"),
    "/docs/page.js": ("page.js", "text/javascript"),
    "/docs/page.css": ("page.css", "text/css"),
}


def routes() -> list[web.RouteDef]:
    return [web.get(path, _send(*found)) for path, found in FILES.items()]


def _send(name: str, content_type: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    body = files("postroad.gateway.rest").joinpath("static", name).read_bytes()

    @rights.declared(rights.PUBLIC)
    async def docs_page(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers=HEADERS)

    return docs_page
