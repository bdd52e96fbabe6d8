"""From a request to a page: who asks, whether it comes from a page of ours, the action, the page.

R1 Nothing changes by GET. What changes comes by POST from a page of this gateway (`Visitors`, by what
   browsers say of it) with the token of the session that the page was made for.
R2 A link from elsewhere shows nothing at once, as it would carry the reader's rights: it leads to a page that
   asks to go on.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import hdrs, web

from postroad.errors import PostroadError
from postroad.gateway.console import assets, layout
from postroad.gateway.console.export import export
from postroad.gateway.console.forms import ACTION, COMMAND, KEY, OWN_PASSWORD, SHOW, TOKEN, Outcome
from postroad.gateway.console.live import Streams
from postroad.gateway.console.login import Login
from postroad.gateway.console.page import Form, Page
from postroad.gateway.console.pages import PAGES
from postroad.gateway.console.responses import html, read_form
from postroad.gateway.console.sessions import Browsers, Visitor
from postroad.gateway.console.visit import Described, ToReview, Visit, problem_of
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import history, problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security import rights
from postroad.markup import tag

ROOT: Final = "/console"
LIVE: Final = "live"
RIGHTS: Final = rights.Rights(by_handler="what the endpoints that it calls need")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    """None if there is to be no console."""
    if not gateway.http.console:
        return []
    console = Console(gateway)
    found: list[web.RouteDef] = [
        console.route(web.get, f"{ROOT}/static/{{name}}", console.asset, "asset", rights.PUBLIC),
        console.route(web.get, f"{ROOT}/login", console.login.show, "login_page", rights.PUBLIC),
        console.route(web.post, f"{ROOT}/login", console.login.act, "login", rights.PUBLIC),
    ]
    found.append(console.route(web.get, f"{ROOT}/history", console.history, "history", RIGHTS))
    path = f"{ROOT}/topics/{{topic}}/messages.{{kind}}"
    found.append(console.route(web.get, path, console.exported, "export", RIGHTS))
    for page in PAGES:
        name = page.render.__name__
        found.append(console.route(web.get, page.path, console.shown(page), name, RIGHTS))
        if page.actions:
            found.append(console.route(web.post, page.path, console.acted(page), f"{name}_action", RIGHTS))
    return found


class Console:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._browsers = Browsers(gateway)
        self._streams = Streams(gateway)
        self.login = Login(gateway, self._browsers)

    def route(
        self,
        method: Callable[..., web.RouteDef],
        path: str,
        handler: Handler,
        name: str,
        needs: rights.Rights,
    ) -> web.RouteDef:
        @rights.declared(needs)
        async def checked(request: web.Request) -> web.StreamResponse:
            refusal = self._gateway.visitors.refusal(request.headers)
            if refusal is not None:
                return _from_elsewhere(request, refusal)
            return await handler(request)

        checked.__name__ = name
        return method(path, checked)

    async def asset(self, request: web.Request) -> web.StreamResponse:
        return assets.answer(request)

    async def history(self, request: web.Request) -> web.StreamResponse:
        """What charts are drawn of: `GET /v1/history` for who is known by a session."""
        try:
            visitor = await self._browsers.visitor(request)
            if visitor is None:
                return web.Response(status=401)
            visit = self._visit(request, visitor)
            try:
                found = await visit.call(history.get_history, visit.query)
            except Refused as refused:
                if refused.problem.status != problems.NOT_FOUND.status:
                    raise
                found = None  # nothing was sampled yet, as a chart has to expect
        except (Refused, PostroadError) as error:
            return problems.answer(problem_of(error))
        return web.Response(
            body=msgspec.json.encode(found), content_type="application/json",
            headers={**assets.HEADERS, hdrs.CACHE_CONTROL: "no-store"},
        )  # fmt: skip

    async def exported(self, request: web.Request) -> web.StreamResponse:
        try:
            visitor = await self._browsers.visitor(request)
            if visitor is None:
                return self.login.lead_to(request)
            return await export(self._visit(request, visitor))
        except (Refused, PostroadError) as error:
            problem = problem_of(error)
            return html(layout.plain(problem.title.rstrip("."), tag("p", problem.detail)), problem.status)

    # --- a page

    def shown(self, page: Page) -> Handler:
        async def show(request: web.Request) -> web.StreamResponse:
            if LIVE in request.query:
                return await self._streams.follow(request, lambda: self._looked(page, request))
            try:
                visitor = await self._browsers.visitor(request)
            except PostroadError as error:
                return _failed(error)
            if visitor is None:
                return self.login.lead_to(request)
            return await self._answer(page, self._visit(request, visitor))

        return show

    async def _looked(self, page: Page, request: web.Request) -> Visit | None:
        """The page once more, for what has changed."""
        visitor = await self._browsers.visitor(request)
        if visitor is None:
            return None
        visit = self._visit(request, visitor)
        await page.render(visit)
        return visit

    def _visit(self, request: web.Request, visitor: Visitor) -> Visit:
        query = {name: value for name, value in request.query.items() if name != LIVE}
        return Visit(self._gateway, request, visitor, query)

    async def _answer(self, page: Page, visit: Visit) -> web.StreamResponse:
        status = 200
        try:
            view = await page.render(visit)
            text = layout.whole(visit, page.section, view, page.is_live and view.is_live)
        except (Refused, PostroadError) as error:
            problem = problem_of(error)
            if problem.status == problems.INTERNAL.status:
                log.exception("%s failed", visit.request.path)
            status, text = problem.status, layout.problem_page(visit, page.section, problem)
        response = html(text, status)
        if visit.visitor.cookie is not None:
            self._browsers.put(response, visit.request, visit.visitor.cookie)
        return response

    # --- an action

    def acted(self, page: Page) -> Handler:
        async def act(request: web.Request) -> web.StreamResponse:
            try:
                visitor = await self._browsers.visitor(request)
            except PostroadError as error:
                return _failed(error)
            if visitor is None:
                return self.login.lead_to(request)
            form = await read_form(request)
            visit = self._visit(request, visitor)
            goto = await self._acted(page, visit, form)
            if goto:
                return _gone_on(request, goto)
            return await self._answer(page, visit)

        return act

    async def _acted(self, page: Page, visit: Visit, form: Form) -> str:
        """Where to go on; empty: stay. What has come of it is the visit's outcome."""
        visit.own_password = form.get(OWN_PASSWORD, "")
        form = {field: value for field, value in form.items() if field != OWN_PASSWORD}
        name, key = form.get(ACTION, ""), form.get(KEY, "")
        act = page.actions.get(name)
        visit.describes = form.get(SHOW) == COMMAND
        try:
            if not self._browsers.is_right(visit.visitor, form.get(TOKEN, "")):
                raise Refused(problems.FORBIDDEN, "This page is from an earlier session: load it again.")
            if act is None:
                raise Refused(problems.NOT_FOUND, "There is no such action on this page.")
            done = await act(visit, form)
        except Described as described:
            visit.outcome = Outcome(name, key, form, command=described.command)
        except ToReview as asked:
            visit.outcome = Outcome(name, key, form, review=asked.review)
        except (Refused, PostroadError) as error:
            problem = problem_of(error)
            if problem.status == problems.INTERNAL.status:
                log.exception("%s of %s failed", name, visit.request.path)
            visit.outcome = Outcome(name, key, form, problem=problem)
        else:
            visit.outcome = Outcome(name, key, form, done=done.text, body=done.body)
            visit.describes = False
            return done.goto
        visit.describes = False
        return ""


def _gone_on(request: web.Request, goto: str) -> web.Response:
    """htmx would show the other page in the place of this one."""
    if "HX-Request" in request.headers:
        return web.Response(headers={"HX-Redirect": goto, hdrs.CACHE_CONTROL: "no-store"})
    return web.Response(status=303, headers={hdrs.LOCATION: goto})


def _failed(error: PostroadError) -> web.Response:
    problem = problems.of(error)
    return html(layout.plain(problem.title.rstrip("."), tag("p", problem.detail)), problem.status)


def _from_elsewhere(request: web.Request, refusal: str) -> web.Response:
    """R2. Only a reader's click leads on: a page can't make a link here look like our own."""
    headers = request.headers
    is_link = (
        request.method in ("GET", "HEAD")
        and headers.get("Sec-Fetch-Mode") == "navigate"
        and headers.get("Sec-Fetch-Dest") == "document"
        and hdrs.ORIGIN not in headers
    )
    if not is_link:
        return web.Response(status=403, text=f"{refusal}\n")
    onward = tag("p", tag("a", "Go on to the console", href=str(request.rel_url), class_="button"))
    return html(layout.plain("A link has led here", tag("p", "It is from another site."), onward), 403)
