"""The list of subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from postroad.gateway.console import reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import history, subscriptions
from postroad.gateway.rest.history import Figures
from postroad.gateway.rest.subscriptions import SubscriptionSummary
from postroad.markup import Html, Node, tag

LIMIT: Final = 100
COLUMNS: Final = (
    "Name", "Topics", "Not done", "In flight", "Delayed", "Oldest", "Done, a second", "Last 10 minutes",
)  # fmt: skip
# What each kind of use is made with; whatever is typed in the form comes before it.
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "work": {"attempts": 5, "backoff_ms": 1000, "backoff_factor": 2.0, "backoff_max_ms": 60_000},
    "fifo": {"order": "key", "attempts": 5, "backoff_ms": 1000},
    "fanout": {"start": "latest", "attempts": 3},
}
PRESET_NAMES: Final = (
    ("work", "a work queue: any order, retries that wait longer each time"),
    ("fifo", "FIFO by key: one message of a key at a time"),
    ("fanout", "one of several readers: what comes from now on"),
    ("", "nothing in particular: the nodes' defaults"),
)
STARTS: Final = (
    ("", "as it is made for"),
    ("latest", "what comes from now on"),
    ("earliest", "all that is there"),
)


@page("/console/subscriptions", "subscriptions")
async def subscriptions_page(visit: Visit) -> View:
    query = visit.query
    asked = {"prefix": query.get("prefix", ""), "after": query.get("after", ""), "limit": LIMIT}
    found = await visit.call(subscriptions.list_subscriptions, asked)
    figures = await visit.call(history.list_figures, {**asked, "of": "subscription"})
    by_name = {each.name: each for each in figures.figures}
    rows = [(each.name, _row(visit, each, by_name.get(each.name))) for each in found.subscriptions]
    nothing = "No subscription's name begins so." if query.get("prefix") else "There is no subscription yet."
    return View(
        "Subscriptions",
        [
            tag("div", _search(visit), _create(visit), class_="head"),
            widgets.table(
                visit, "subscriptions", COLUMNS, rows, numbers=[2, 3, 4, 5, 6], caption="Subscriptions",
                empty=nothing,
            ),
            widgets.pager(visit, found.next),
        ],
    )  # fmt: skip


@subscriptions_page.action("create")
async def create(visit: Visit, form: Form) -> Done:
    name = form.get("name", "").strip()
    body: dict[str, Any] = {"name": name, "topics": form.get("topics", "").replace(",", " ").split()}
    body |= PRESETS.get(form.get("preset", ""), {})
    if form.get("start"):
        body["start"] = form["start"]
    if form.get("lock", "").strip():
        body["lock_ms"] = reading.span_ms(form["lock"], "Lock")
    if form.get("attempts", "").strip():
        body["attempts"] = reading.whole_number(form["attempts"], "Deliveries")
    await visit.change(subscriptions.create_subscription, body)
    return Done(f"The subscription {name} was created.", widgets.path("subscriptions", name))


def topic_links(names: Sequence[str]) -> Node:
    return [[widgets.link(name, "topics", name), " "] for name in names]


def _row(visit: Visit, found: SubscriptionSummary, figures: Figures | None) -> list[Node]:
    values = figures.values if figures is not None else {}
    return [
        widgets.link(found.name, "subscriptions", found.name),
        topic_links(found.topics),
        words.count(values.get("lag")),
        words.count(values.get("in_flight")),
        words.count(values.get("delayed")),
        words.span(values.get("oldest_seconds")),
        words.rate(values.get("accepted_rate")),
        widgets.spark(visit.recent("subscription", found.name, "lag"), f"Messages not done in {found.name}"),
    ]


def _search(visit: Visit) -> Html:
    field = widgets.search_field("prefix", "Name begins with", visit.query.get("prefix", ""))
    button = tag("button", "Search", type="submit")
    return tag(
        "form", field, button, method="get", action=widgets.path("subscriptions"), class_="tools",
        role="search",
    )  # fmt: skip


def _create(visit: Visit) -> Html:
    form = visit.form("create")
    return form.dialog(
        "Create a subscription…",
        "Create a subscription",
        form.text(
            "name", "Name", hint="Letters, digits, dot, underscore and hyphen.", required=True,
            pattern=r"[a-zA-Z0-9._\-]{1,249}",
        ),
        form.text("topics", "Topics", hint="One or more, with blanks between.", required=True),
        form.choice("preset", "It is for", PRESET_NAMES, "work"),
        form.choice("start", "It begins with", STARTS),
        tag(
            "div",
            form.text("lock", "Lock", hint="How long a consumer has for a message: 30s."),
            form.number("attempts", "Deliveries", min="0", max="1000", hint="Then it is a dead letter."),
            class_="pair",
        ),
        submit="Create",
    )  # fmt: skip
