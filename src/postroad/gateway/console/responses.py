"""Pages as answers, and forms as they come."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from aiohttp import hdrs, web

from postroad.gateway import bodies
from postroad.gateway.console import assets
from postroad.gateway.console.page import Form
from postroad.markup import Html

COMPRESSED_FROM_BYTES: Final = 32 * 1024  # below it is not worth the time
FIELDS_MAX: Final = 5000


def html(text: Html, status: int = 200) -> web.Response:
    # What came with surrogate escapes can't be written as UTF-8.
    response = web.Response(
        body=text.encode(errors="replace"), status=status, content_type="text/html", charset="utf-8",
        headers={**assets.HEADERS, hdrs.CACHE_CONTROL: "no-store"},
    )  # fmt: skip
    if len(text) >= COMPRESSED_FROM_BYTES:
        response.enable_compression()
    return response


async def read_form(request: web.Request) -> Form:
    """A form's fields; several of one name become lines of one. Raises HTTPUnsupportedMediaType."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType(text="Send a form.\n")
    text = (await bodies.read(request)).decode(errors="replace")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise web.HTTPBadRequest(text="The form has too many fields.\n") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found
