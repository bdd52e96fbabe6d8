"""The list of topics."""

from __future__ import annotations

from typing import Any, Final

from postroad.gateway.console import reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import history, topics
from postroad.gateway.rest.history import Figures
from postroad.markup import Html, Node, join, tag

LIMIT: Final = 100
READERS_SHOWN: Final = 3
COLUMNS: Final = ("Name", "Partitions", "Messages", "Size", "In, a second", "Last 10 minutes", "Readers")


@page("/console/topics", "topics")
async def topics_page(visit: Visit) -> View:
    """Internal topics only when they are asked for."""
    query = visit.query
    internal = query.get("internal") == "yes"
    asked = {"prefix": query.get("prefix", ""), "after": query.get("after", ""), "limit": LIMIT}
    found = await visit.call(topics.list_topics, asked)
    figures = await visit.call(history.list_figures, {**asked, "of": "topic"})
    by_name = {each.name: each for each in figures.figures}
    shown = [topic for topic in found.topics if internal or not topic.internal]
    nothing = "No topic's name begins so." if query.get("prefix") else "There is no topic yet."
    return View(
        "Topics",
        [
            tag("div", _search(visit, internal), _create(visit), class_="head"),
            widgets.table(
                visit, "topics", COLUMNS,
                [(topic.name, _row(visit, topic, by_name.get(topic.name))) for topic in shown],
                numbers=[1, 2, 3, 4], caption="Topics", empty=nothing,
            ),
            widgets.pager(visit, found.next),
        ],
    )  # fmt: skip


def _row(visit: Visit, topic: topics.TopicSummary, figures: Figures | None) -> list[Node]:
    values = figures.values if figures is not None else {}
    name = widgets.link(topic.name, "topics", topic.name)
    return [
        join([name, " ", widgets.badge("internal")]) if topic.internal else name,
        words.count(topic.partitions),
        words.count(values.get("messages")),
        words.size(values.get("size_bytes")),
        words.rate(values.get("in")),
        widgets.spark(visit.recent("topic", topic.name, "in"), f"Messages into {topic.name}"),
        readers(figures.readers if figures is not None else []),
    ]


def readers(found: list[history.TopicReader]) -> Node:
    """Groups and subscriptions, the first ones of many."""
    shown: list[Node] = []
    for reader in found[:READERS_SHOWN]:
        section = "groups" if reader.kind == "group" else "subscriptions"
        shown += [widgets.link(reader.name, section, reader.name), " "]
    more = len(found) - READERS_SHOWN
    return [shown, f"and {more} more" if more > 0 else None] if found else words.NONE


@topics_page.action("create")
async def create(visit: Visit, form: Form) -> Done:
    body: dict[str, Any] = {"name": form.get("name", "").strip()}
    if form.get("partitions"):
        body["partitions"] = reading.whole_number(form["partitions"], "Partitions")
    configs = reading.lines_of(form.get("configs", ""))
    if configs:
        body["configs"] = configs
    await visit.change(topics.create_topic, body)
    return Done(f"The topic {body['name']} was created.", widgets.path("topics", body["name"]))


def _search(visit: Visit, internal: bool) -> Html:
    return tag(
        "form",
        widgets.search_field("prefix", "Name begins with", visit.query.get("prefix", "")),
        widgets.toggle("internal", "Internal ones, too", internal),
        tag("button", "Search", type="submit"),
        method="get", action=widgets.path("topics"), class_="tools", role="search",
    )  # fmt: skip


def _create(visit: Visit) -> Html:
    form = visit.form("create")
    return form.dialog(
        "Create a topic…",
        "Create a topic",
        form.text(
            "name", "Name", hint="Letters, digits, dot, underscore and hyphen.", required=True,
            pattern=r"[a-zA-Z0-9._\-]{1,249}",
        ),
        form.number(
            "partitions", "Partitions", min="1", max="10000",
            hint="Empty: as the nodes are set. It can be raised later, never lowered.",
        ),
        form.area("configs", "Configs", hint="One a line, such as retention.ms=86400000. May be left empty."),
        submit="Create",
    )  # fmt: skip
