"""How long a message waits after a failed delivery.

As its subscription says, if that has a backoff; else 1 s, 2 s, 4 s … up to five minutes. Longer if the
endpoint has asked for more time, never shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIRST_MS: Final = 1_000
MAX_MS: Final = 300_000
JITTER: Final = 0.2

INITIAL_CONFIG: Final = "postroad.backoff.initial.ms"
FACTOR_CONFIG: Final = "postroad.backoff.factor"
MAX_CONFIG: Final = "postroad.backoff.max.ms"


def delay_ms(config: Mapping[str, str], attempt: int, asked_ms: int, chance: float) -> int | None:
    """After so many attempts; `chance` lies in [0, 1). None: the node knows, by the subscription's config."""
    initial_ms = int(config.get(INITIAL_CONFIG, "0"))
    if not initial_ms:
        return max(asked_ms, int(_grown(FIRST_MS, 2, MAX_MS, attempt) * (1 - JITTER * chance)))
    own_ms = _grown(initial_ms, float(config[FACTOR_CONFIG]), int(config[MAX_CONFIG]), attempt)
    return asked_ms if asked_ms > own_ms else None


def _grown(first_ms: int, factor: float, max_ms: int, attempt: int) -> float:
    try:
        return min(first_ms * factor ** (attempt - 1), max_ms)
    except OverflowError:
        return max_ms
