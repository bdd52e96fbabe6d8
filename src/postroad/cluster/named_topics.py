"""The topics that a group's config names (`postroad.topics`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TOPICS_CONFIG: Final = "postroad.topics"


def named_topics(config: Mapping[str, str]) -> tuple[str, ...]:
    """The names in the order of the config, which was validated when it was set."""
    text = config.get(TOPICS_CONFIG, "").strip()
    return tuple(name.strip() for name in text.split(",")) if text else ()
