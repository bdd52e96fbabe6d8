"""The page at `/` for people: a browser there finds out what runs here, and where to go on. Where there is a
console it is led there.

Programs speak SQS at the same address, so the page is only for a GET that accepts HTML and names no action.
It is one text without scripts, and loads nothing; the content security policy allows its own style alone.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Awaitable, Callable
from importlib.metadata import metadata
from typing import Final

from aiohttp import hdrs, web

from postroad import __version__
from postroad.gateway.app import ACTION
from postroad.gateway.security import rights

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.75rem; margin-bottom: 0; }
p.version { margin-top: 0; opacity: .75; }
dt { font-weight: 600; margin-top: .75rem; }
dd { margin: 0; }
pre { padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid; }
"""
PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Postroad</title>
<style>{style}</style>
</head>
<body>
<h1>Postroad</h1>
<p class="version">Version {version}. The HTTP gateway of a durable message queue is running here.</p>
<dl>
<dt><a href="/docs">REST reference</a></dt>
<dd>Every endpoint, with a form to try it; also as <a href="/openapi.json">an OpenAPI document</a>.</dd>
<dt><a href="/metrics">Metrics</a></dt>
<dd>For Prometheus, of this gateway and its nodes.</dd>
<dt><a href="/healthz">Health</a> and <a href="/readyz">readiness</a></dt>
<dd>For load balancers and orchestrators.</dd>
{guide}</dl>
<h2>Try it</h2>
<p>Publish a message; the topic is created on the way:</p>
<pre><code>curl --json '{{"value": "hello"}}' {origin}/v1/topics/hello/messages</code></pre>
<p>SQS clients use this address as their endpoint URL:</p>
<pre><code>aws sqs list-queues --endpoint-url {origin}</code></pre>
<p>Kafka clients connect to the node itself, at the address that <code>postroad serve</code> printed.</p>
</body>
</html>
"""
GUIDE: Final = """<dt><a href="{url}">Guide</a></dt>
<dd>How to use and run Postroad.</dd>
"""
CONSOLE: Final = "/console"
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept",
}


def before(handler: Handler, has_console: bool) -> Handler:
    """The page for people, or the way to the console; whatever else comes is the handler's."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if not is_wanted(request):
            return await handler(request)
        request[ACTION] = "welcome"
        if has_console:
            found = {"Location": CONSOLE, "Vary": "Accept", "Cache-Control": "no-cache"}
            return web.Response(status=302, headers=found)
        text = page(f"{request.scheme}://{request.host}")
        return web.Response(text=text, content_type="text/html", headers=HEADERS)

    answer.__name__ = getattr(handler, "__name__", "answer")
    return rights.declared(rights.BY_ACTION)(answer)


def is_wanted(request: web.Request) -> bool:
    accepts_html = "text/html" in request.headers.get(hdrs.ACCEPT, "").lower()
    return accepts_html and "Action" not in request.query and "X-Amz-Target" not in request.headers


def page(origin: str) -> str:
    """`origin`: scheme, host and port as the browser addressed us."""
    url = _guide_url()
    guide = GUIDE.format(url=html.escape(url)) if url else ""
    return PAGE.format(style=STYLE, version=__version__, guide=guide, origin=html.escape(origin))


def _guide_url() -> str:
    """Where the package says that its documentation is; empty if it does not say."""
    named = dict(entry.split(", ", 1) for entry in metadata("postroad").get_all("Project-URL") or [])
    return str(named.get("Documentation", ""))
