"""What the clocks say, as the pure rooms are told it."""

from __future__ import annotations

from typing import NamedTuple


class Now(NamedTuple):
    """The two clocks. `ms` never goes back and carries every deadline; `wall_ms` is for what outlives a
    restart."""

    ms: int
    wall_ms: int
