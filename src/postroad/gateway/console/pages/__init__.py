"""All pages of the console, in the order in which paths are matched."""

from __future__ import annotations

from typing import Final

from postroad.gateway.console.page import Page
from postroad.gateway.console.pages import (
    access,
    cluster,
    dead_letters,
    group,
    groups,
    message,
    messages,
    overview,
    subscription,
    subscriptions,
    topic,
    topics,
    user,
    webhook,
)

PAGES: Final[tuple[Page, ...]] = (
    overview.overview_page,
    topics.topics_page,
    topic.topic_page,
    messages.messages_page,
    message.message_page,
    subscriptions.subscriptions_page,
    subscription.subscription_page,
    dead_letters.dead_letters_page,
    webhook.webhook_page,
    groups.groups_page,
    group.group_page,
    cluster.cluster_page,
    access.access_page,
    user.user_page,
)
