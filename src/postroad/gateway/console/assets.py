"""Scripts and styles, sent as they lie in `static/`: no build, and nothing from elsewhere.

A file's address has a hash of its content, so browsers may keep it for ever. What others wrote lies in
`static/vendor/`, fetched and compared by `make vendor`.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from aiohttp import hdrs, web

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with `no-referrer` our own forms come with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FOR_EVER: Final = "max-age=31536000, immutable"
FILES: Final = {
    "console.css": ("console.css", "text/css"),
    "console.js": ("console.js", "text/javascript"),
    "chart.js": ("chart.js", "text/javascript"),
    # One file: htmx begins as soon as it is there, and what comes later it would not wait for.
    "htmx.js": ("vendor/htmx.min.js vendor/hx-sse.min.js", "text/javascript"),
    "uPlot.iife.min.js": ("vendor/uPlot.iife.min.js", "text/javascript"),
    "uPlot.min.css": ("vendor/uPlot.min.css", "text/css"),
}


class Asset(NamedTuple):
    packed: bytes  # by gzip
    plain: bytes
    content_type: str
    mark: str  # a hash of its content


@cache
def asset(name: str) -> Asset:
    """Raises KeyError."""
    names, content_type = FILES[name]
    folder = files("postroad.gateway.console").joinpath("static")
    plain = b"\n".join(folder.joinpath(each).read_bytes() for each in names.split())
    packed = gzip.compress(plain, 9, mtime=0)
    return Asset(packed, plain, content_type, hashlib.sha256(plain).hexdigest()[:12])


def address(name: str) -> str:
    return f"/console/static/{name}?{asset(name).mark}"


def answer(request: web.Request) -> web.Response:
    """Raises HTTPNotFound."""
    try:
        found = asset(request.match_info["name"])
    except KeyError:
        raise web.HTTPNotFound(text="There is no such file.\n") from None
    headers = {**HEADERS, hdrs.VARY: "Accept-Encoding"}
    headers[hdrs.CACHE_CONTROL] = FOR_EVER if request.query_string == found.mark else "no-cache"
    body = found.plain
    if "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, ""):
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        body = found.packed
    return web.Response(body=body, content_type=found.content_type, charset="utf-8", headers=headers)
