"""A node that many tests share, for minutes. Some of their messages have timestamps of years ago and would be
gone after the next look for old ones, in the middle of a test. So it does not look."""

from __future__ import annotations

from typing import Final

from postroad.testing.process import Setting

CHECK_MS: Final = 24 * 60 * 60 * 1000
SETTINGS: Final[dict[str, Setting]] = {"storage.retention_check_ms": CHECK_MS}
