"""The page on which somebody logs in, where the gateway asks for a user or an access key."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.console import layout
from postroad.gateway.console.forms import ACTION, TOKEN
from postroad.gateway.console.responses import html, read_form
from postroad.gateway.console.sessions import Browsers
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import problems
from postroad.markup import Html, Node, tag

PATH: Final = "/console/login"
NEXT: Final = "next"
LOGOUT: Final = "logout"


class Login:
    def __init__(self, gateway: Gateway, browsers: Browsers) -> None:
        self._gateway = gateway
        self._browsers = browsers

    def lead_to(self, request: web.Request) -> web.Response:
        """In place of a page that asks who is there."""
        goto = f"{PATH}?{urlencode({NEXT: str(request.rel_url)})}" if request.method == "GET" else PATH
        if "HX-Request" in request.headers:
            return web.Response(headers={"HX-Redirect": goto})
        return web.Response(status=303, headers={"Location": goto})

    async def show(self, request: web.Request) -> web.StreamResponse:
        return self._page(request, _next(request.query.get(NEXT, "")))

    async def act(self, request: web.Request) -> web.StreamResponse:
        """In, or out again."""
        form = await read_form(request)
        if form.get(ACTION) == LOGOUT:
            return await self._left(request, form.get(TOKEN, ""))
        goto, name = _next(form.get(NEXT, "")), form.get("user", "")
        if not self._browsers.is_right(self._browsers.stranger(request), form.get(TOKEN, "")):
            return self._page(request, goto, name, "The page was too old. Please try again.")
        try:
            cookie = await self._browsers.login(request, name, form.get("password", ""))
        except PostroadError as error:
            return self._page(request, goto, name, problems.of(error).detail, 503)
        if cookie is None:
            return self._page(request, goto, name, "Name or password are wrong.")
        response = web.Response(status=303, headers={"Location": goto})
        self._browsers.put(response, request, cookie)
        return response

    async def _left(self, request: web.Request, token: str) -> web.StreamResponse:
        visitor = await self._browsers.visitor(request)
        response = web.Response(status=303, headers={"Location": PATH})
        if visitor is not None and self._browsers.is_right(visitor, token):
            self._browsers.put(response, request, "")
        return response

    def _page(
        self, request: web.Request, goto: str, name: str = "", problem: str = "", status: int = 401
    ) -> web.Response:
        stranger = self._browsers.stranger(request)
        keys = "" if self._gateway.identities.are_users else "An access key: its id, and its secret."
        fields: list[Node] = [
            tag("input", type="hidden", name=TOKEN, value=stranger.token),
            tag("input", type="hidden", name=NEXT, value=goto),
            _field("user", "User", name, "text", "username", autofocus=not name),
            _field("password", "Password", "", "password", "current-password", autofocus=bool(name)),
            tag("p", keys, class_="hint") if keys else None,
            tag("p", problem, class_="problem", role="alert") if problem else None,
            tag("div", tag("button", "Log in", type="submit", class_="primary"), class_="buttons"),
        ]
        form = tag("form", fields, method="post", action=PATH, class_="panel")
        response = html(layout.plain("Log in to Postroad", form), status if problem else 200)
        if stranger.cookie is not None:
            self._browsers.put(response, request, stranger.cookie)
        return response


def _field(name: str, label: str, value: str, type_: str, autocomplete: str, *, autofocus: bool) -> Html:
    field = tag(
        "input", id=name, name=name, type=type_, value=value, autocomplete=autocomplete, required=True,
        autofocus=autofocus, spellcheck="false", autocapitalize="none",
    )  # fmt: skip
    return tag("p", tag("label", label, for_=name), field, class_="field")


def _next(goto: str) -> str:
    """Where to go on: a page of the console, and nothing that a link from elsewhere may have put there."""
    is_ours = goto == "/console" or goto.startswith(("/console/", "/console?"))
    return goto if is_ours and "\\" not in goto and not goto.startswith(PATH) else "/console"
