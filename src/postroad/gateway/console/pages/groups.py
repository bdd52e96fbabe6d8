"""The list of consumer groups."""

from __future__ import annotations

from typing import Final

from postroad.gateway.console import widgets, words
from postroad.gateway.console.page import View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import consumer_groups, history
from postroad.markup import Node, tag

LIMIT: Final = 100
COLUMNS: Final = ("Name", "State", "Type", "Lag", "Oldest unread", "Last 10 minutes")
# As both group protocols say it: does the group read?
STATES: Final = {"stable": "good", "empty": "", "dead": "bad"}


@page("/console/groups", "groups")
async def groups_page(visit: Visit) -> View:
    prefix = visit.query.get("prefix", "")
    asked = {"prefix": prefix, "after": visit.query.get("after", ""), "limit": LIMIT}
    found = await visit.call(consumer_groups.list_groups, asked)
    figures = await visit.call(history.list_figures, {**asked, "of": "group"})
    by_name = {each.name: each.values for each in figures.figures}
    nothing = "No group's name begins so." if prefix else "There is no consumer group yet."
    return View(
        "Consumer groups",
        [
            tag(
                "form",
                widgets.search_field("prefix", "Name begins with", prefix),
                tag("button", "Search", type="submit"),
                method="get", action=widgets.path("groups"), class_="tools", role="search",
            ),
            widgets.table(
                visit, "groups", COLUMNS,
                [(each.name, _row(visit, each, by_name.get(each.name, {}))) for each in found.groups],
                numbers=[3, 4], caption="Consumer groups", empty=nothing,
            ),
            widgets.pager(visit, found.next),
        ],
    )  # fmt: skip


def _row(visit: Visit, group: consumer_groups.GroupSummary, values: dict[str, float]) -> list[Node]:
    return [
        widgets.link(group.name, "groups", group.name),
        state(group.state),
        group.type,
        words.count(values.get("lag")),
        words.span(values.get("lag_seconds")),
        widgets.spark(visit.recent("group", group.name, "lag"), f"Lag of {group.name}"),
    ]


def state(text: str) -> Node:
    kind = STATES.get(text.lower(), "warn")
    return widgets.badge(text.lower(), kind) if text else words.NONE
