"""What a log is told of its topic's settings."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from postroad.cluster.topic_config import TopicSettings
from postroad.log.settings import LogSettings

_SHARED: Final = {field.name for field in fields(LogSettings)} & {
    field.name for field in fields(TopicSettings)
}


def log_settings(settings: TopicSettings, producer_expiry_ms: int, copied: bool = False) -> LogSettings:
    """The part of a topic's settings that its logs need. `copied`: there are other replicas."""
    shared = {name: getattr(settings, name) for name in _SHARED}
    return LogSettings(**shared, producer_expiry_ms=producer_expiry_ms, copied=copied)
