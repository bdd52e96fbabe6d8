"""What all tests share: Hypothesis draws the same examples each time (seed + commit = bug report)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "postroad", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("postroad")
