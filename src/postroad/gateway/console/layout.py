"""What stands around every page: head, navigation, what an action has done, and the connection for ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad import __version__
from postroad.gateway.console.assets import address
from postroad.gateway.console.forms import ACTION, TOKEN
from postroad.gateway.console.page import View
from postroad.gateway.console.payloads import spelled, spelled_text
from postroad.gateway.rest.problems import Problem
from postroad.markup import DOCTYPE, Html, Node, join, tag

if TYPE_CHECKING:
    from postroad.gateway.console.visit import Visit

# Address, name, key after `g`; in the order of the navigation.
SECTIONS: Final = (
    ("overview", "/console", "Overview", "o"),
    ("topics", "/console/topics", "Topics", "t"),
    ("subscriptions", "/console/subscriptions", "Subscriptions", "s"),
    ("groups", "/console/groups", "Groups", "g"),
    ("cluster", "/console/cluster", "Cluster", "c"),
    ("access", "/console/access", "Access", "a"),
)
KEYS: Final = (
    ("/", "Search, or the filter"),
    ("g then a letter", "Go to a page: the letter is underlined"),
    ("j, k", "Next, previous row"),
    ("Enter", "Open the row"),
    ("p", "Pause and go on"),
    ("l", "Live: follow what is written"),
    ("?", "These keys"),
)
HTMX: Final = '{"includeIndicatorCSS":false,"history":false,"extensions":"sse","defaultSettleDelay":0}'


def document(title: str, inside: Node) -> Html:
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="htmx-config", content=HTMX),
        tag("title", f"{spelled_text(title)} · Postroad"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href=address("console.css")),
        [tag("script", src=address(name), defer=True) for name in ("console.js", "htmx.js")],
    ]
    return join([DOCTYPE, tag("html", tag("head", head), tag("body", inside), lang="en")])


def whole(visit: Visit, section: str, view: View, is_live: bool) -> Html:
    here = str(visit.request.rel_url.without_query_params("live"))
    live = here + ("&" if "?" in here else "?") + "live=1"
    connection = tag(
        "div", id="live", hx_swap="none", hx_config="sse.reconnectMaxDelay:2s",
        **{"hx-sse:connect": live},
    )  # fmt: skip
    return document(
        view.title,
        [
            tag("a", "Skip to the content", href="#main", class_="skip"),
            _top(visit, section),
            tag("p", "The gateway does not answer. Trying again …", id="lost", role="status", hidden=True),
            tag(
                "main", _above(view), tag("h1", spelled(view.title)), _outcome(visit), view.body,
                id="main", tabindex="-1", data_outcome=visit.outcome.kind if visit.outcome else None,
            ),
            connection if is_live else None,
            _help(),
        ],
    )  # fmt: skip


def plain(title: str, *inside: Node) -> Html:
    """A page for who is not let in, or not yet."""
    return document(title, tag("main", tag("h1", title), inside, id="main", class_="narrow"))


def problem_page(visit: Visit, section: str, problem: Problem) -> Html:
    text = tag("p", problem.detail or problem.title, class_="problem", role="alert")
    return whole(visit, section, View(problem.title.rstrip("."), text), is_live=False)


def _top(visit: Visit, section: str) -> Html:
    links = [
        tag(
            "a", _with_key(text, key), href=href, data_key=key,
            aria_current="page" if name == section else None,
        )
        for name, href, text, key in SECTIONS
    ]  # fmt: skip
    return tag(
        "header",
        tag("a", "Postroad", href="/console", class_="brand", title=f"Version {__version__}"),
        tag("nav", links, aria_label="Console"),
        tag("div", _marks(visit), _who(visit), class_="who"),
    )


def _with_key(text: str, key: str) -> Node:
    at = text.lower().find(key)
    return [text[:at], tag("u", text[at]), text[at + 1 :]] if at >= 0 else text


def _marks(visit: Visit) -> Node:
    marks = [] if visit.changes else [tag("span", "read-only", class_="badge")]
    if not visit.shows_payloads:
        marks.append(tag("span", "payloads hidden", class_="badge"))
    return marks


def _who(visit: Visit) -> Node:
    visitor = visit.visitor
    name = tag("span", visitor.name, class_="name") if visitor.name else None
    if not visitor.may_leave:
        return name
    fields = [tag("input", type="hidden", name=key, value=value)
              for key, value in ((TOKEN, visitor.token), (ACTION, "logout"))]  # fmt: skip
    button = tag("button", "Log out", type="submit", class_="quiet")
    return [name, tag("form", fields, button, method="post", action="/console/login", class_="inline")]


def _above(view: View) -> Node:
    if not view.above:
        return None
    return tag(
        "p", [[tag("a", spelled(text), href=href), " › "] for text, href in view.above], class_="above"
    )


def _outcome(visit: Visit) -> Html:
    """What was done; what went wrong stands beside its form, or here if that is on the page no longer."""
    outcome, shown = visit.outcome, None
    if outcome is not None and outcome.kind == "done":
        shown = tag("div", tag("p", outcome.done), outcome.body, class_="notice good")
    elif outcome is not None and outcome.problem is not None and not visit.outcome_has_form:
        text = outcome.problem.detail or outcome.problem.title
        shown = tag("p", text, class_="problem", role="alert")
    return tag("div", shown, id="outcome", role="status")


def _help() -> Html:
    rows = [tag("div", tag("dt", tag("kbd", key)), tag("dd", text)) for key, text in KEYS]
    close = tag(
        "button", "Close", type="button", popovertarget="keys", popovertargetaction="hide", class_="quiet"
    )
    return tag(
        "div", tag("h2", "Keys", id="keys-title"), tag("dl", rows, class_="facts"), close,
        id="keys", popover="auto", role="dialog", class_="dialog", aria_labelledby="keys-title",
    )  # fmt: skip
