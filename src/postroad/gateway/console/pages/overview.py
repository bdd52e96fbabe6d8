"""The first page: what runs here, and what to look at."""

from __future__ import annotations

from postroad import __version__
from postroad.gateway.console import widgets
from postroad.gateway.console.page import View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import subscriptions, topics
from postroad.markup import tag


@page("/console", "overview")
async def overview_page(visit: Visit) -> View:
    known = await visit.call(topics.list_topics, {"limit": 1000})
    found = await visit.call(subscriptions.list_subscriptions, {"limit": 1000})
    own = [topic for topic in known.topics if not topic.internal]
    return View(
        "Overview",
        [
            widgets.figures(
                widgets.figure(visit, "count-topics", "Topics", str(len(own))),
                widgets.figure(visit, "count-subscriptions", "Subscriptions", str(len(found.subscriptions))),
            ),
            tag("p", f"Postroad {__version__}. ", tag("a", "REST reference", href="/docs"), class_="soft"),
        ],
    )
