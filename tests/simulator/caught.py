"""Whether some seed shows a mutant. Which one changes with the order of events, so none is written down."""

from __future__ import annotations

from typing import Final

from simulator.campaign import Campaign, play_apart

SEEDS_MAX: Final = 100  # a mutant that one seed in ten shows is missed by as many once in 40,000 times


def is_caught(campaign: Campaign) -> bool:
    """Try one seed after the other until one breaks a promise."""
    return any(play_apart(campaign, seed).violations for seed in range(1, 1 + SEEDS_MAX))
