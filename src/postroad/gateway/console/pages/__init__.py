"""All pages of the console, in the order in which paths are matched."""

from __future__ import annotations

from typing import Final

from postroad.gateway.console.page import Page
from postroad.gateway.console.pages import overview, topic, topics

PAGES: Final[tuple[Page, ...]] = (
    overview.overview_page,
    topics.topics_page,
    topic.topic_page,
)
