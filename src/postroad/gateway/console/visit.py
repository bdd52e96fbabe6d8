"""`Visit`: one look at a page, or one action on it; and the endpoints of REST, called in the visitor's name.

V1 A page reads by `call` and changes by `change`, and both go through an endpoint with the visitor's rights:
   so whatever the console does is a public call, and what may not be called can't be clicked.
V2 Asked "as a command", an action runs up to its first change, which is written down and not carried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.console.commands import Command, command_of
from postroad.gateway.console.forms import CONFIRMED, FormMaker, Outcome, Review, digest_of
from postroad.gateway.console.sessions import Visitor
from postroad.gateway.gateway import Gateway
from postroad.gateway.history.ring import SeriesKey
from postroad.gateway.rest import fields, problems, serving
from postroad.gateway.rest.endpoint import Call, Endpoint, EndpointAnswer, Nothing
from postroad.gateway.rest.problems import Problem, Refused
from postroad.gateway.security import rights
from postroad.gateway.security.access import Access
from postroad.markup import Html, Node, tag
from postroad.security.resources import Operation

RECENT_SLOTS: Final = 120  # ten minutes
_ENCODED: Final = msgspec.json.Encoder()


class Described(Exception):
    """Raised in place of a change that was only to be shown as a command."""

    def __init__(self, command: Command) -> None:
        super().__init__(command.curl)
        self.command = command


class ToReview(Exception):
    """Raised in place of a change that is to be looked over first."""

    def __init__(self, review: Review) -> None:
        super().__init__(review.label)
        self.review = review


class Visit:
    """`parts` has what a tick may renew, by id, in the order in which the page made it."""

    def __init__(
        self, gateway: Gateway, request: web.Request, visitor: Visitor, query: Mapping[str, str]
    ) -> None:
        self.gateway = gateway
        self.request = request
        self.visitor = visitor
        self.query = query
        self.path: Mapping[str, str] = request.match_info
        self.parts: dict[str, Html] = {}
        self.frames: dict[str, tuple[tuple[str, ...], Html]] = {}  # with the names of their rows
        self.outcome: Outcome | None = None
        self.outcome_has_form = False  # its form is on the page, and shows it
        self.describes = False
        self.own_password = ""  # as it came with a form

    @property
    def access(self) -> Access:
        return self.visitor.access

    @property
    def changes(self) -> bool:
        """Whether the console may change anything at all."""
        return not self.gateway.settings.console.read_only

    @property
    def shows_payloads(self) -> bool:
        return self.gateway.settings.console.shows_payloads

    @property
    def origin(self) -> str:
        return self.gateway.http.url.rstrip("/") or f"{self.request.scheme}://{self.request.host}"

    # --- endpoints

    async def call(self, endpoint: Endpoint, query: Mapping[str, Any] | None = None, **path: str) -> Any:
        """What the endpoint answers. Raises Refused, PostroadError."""
        return await self._perform(endpoint, query or {}, None, path)

    async def change(
        self, endpoint: Endpoint, body: Any = None, query: Mapping[str, Any] | None = None, **path: str
    ) -> Any:
        """The same for an endpoint that changes something. Raises Refused, PostroadError, Described."""
        if not self.changes:
            raise Refused(problems.FORBIDDEN, "This console is read-only (console.read_only).")
        if self.describes:
            user = self.visitor.name if self.access.is_guarded else ""
            raise Described(command_of(self.origin, endpoint, path, query or {}, body, user))
        return await self._perform(endpoint, query or {}, body, path)

    async def preview(self, endpoint: Endpoint, body: Any, **path: str) -> Any:
        """What a change would do, asked of an endpoint that was told not to do it (`dry_run`). Raises
        Refused, PostroadError."""
        assert body.get("dry_run") is True, body
        return await self._perform(endpoint, {}, body, path)

    def review(self, form: Mapping[str, str], label: str, *effect: Node, danger: bool = True) -> None:
        """Raises ToReview unless this form was looked over."""
        digest = digest_of(form)
        if not self.describes and form.get(CONFIRMED) != digest:
            raise ToReview(Review(label, effect, digest, danger))

    async def _perform(
        self, endpoint: Endpoint, query: Mapping[str, Any], body: Any, path: Mapping[str, str]
    ) -> Any:
        access = self.access
        if endpoint.admin and not access.admin and not access.is_guarded:
            raise Refused(problems.FORBIDDEN, "This needs an admin key.")
        for name, value in path.items():
            if not fields.PATH[name].matches(value):
                raise Refused(problems.MALFORMED, f"{name}: {fields.PATH[name].right}")
        group, topic = path.get("subscription") or path.get("group", ""), path.get("topic", "")
        await rights.check(access, endpoint.rights, self.gateway.directory, group=group, topic=topic)
        try:
            asked = msgspec.convert(dict(query), endpoint.query, strict=False)
        except msgspec.ValidationError as error:
            raise Refused(problems.MALFORMED, str(error)) from None
        given = Nothing() if endpoint.body is Nothing else self._body(endpoint, body)
        call = Call(self.gateway, self.request, path, asked, given, access, self.own_password)
        result = await endpoint.handler(call)
        return result.body if isinstance(result, EndpointAnswer) else result

    @staticmethod
    def _body(endpoint: Endpoint, body: Any) -> Any:
        decoder = msgspec.json.Decoder(endpoint.body)
        return serving.decode(decoder, _ENCODED.encode({} if body is None else body))

    # --- rights, for what is to be shown

    @property
    def may_lose(self) -> bool:
        """Whether the visitor has an admin's key, where keys of the settings are all that is asked for."""
        return self.access.admin or self.access.is_guarded

    def shows_peek(self, subscription: str, topics: Sequence[str]) -> bool:
        """Whether the visitor may look at the messages that a subscription is not done with."""
        return all(self.may_topic(name, rights.READ) for name in topics)

    @property
    def may_alter_cluster(self) -> bool:
        """Whether the visitor may change nodes, users and rules."""
        return self.may_lose and self.access.may_cluster(rights.ALTER)

    def may_topic(self, name: str, operation: Operation) -> bool:
        return self.access.may_topic(name, operation)

    def may_group(self, name: str, operation: Operation) -> bool:
        return self.access.may_group(name, operation)

    # --- what a page is made of

    def recent(self, kind: str, name: str, measure: str, count: int = RECENT_SLOTS) -> list[float | None]:
        """The newest samples, for a small chart of something that the page shows anyway."""
        return self.gateway.history.ring.fine(SeriesKey(kind, name, measure), count)

    def live(self, id_: str, name: str, /, *children: Node, **attributes: object) -> Html:
        """An element that a tick renews when it has changed."""
        made = tag(name, *children, id=id_, **attributes)
        self.parts[id_] = made
        return made

    def frame(self, id_: str, rows: Sequence[str], made: Html) -> Html:
        """What has rows that are live each; a tick renews the whole of it when they are others."""
        self.frames[id_] = tuple(rows), made
        return made

    def form(self, action: str, key: str = "") -> FormMaker:
        return FormMaker(self, action, key)


def problem_of(error: Refused | PostroadError) -> Problem:
    return error.problem if isinstance(error, Refused) else problems.of(error)
