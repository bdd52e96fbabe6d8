"""One try at publishing something under a name."""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Attempt(NamedTuple):
    """Somebody published a content under a name; `told` is inf unless all of it was acknowledged."""

    name: bytes
    content: bytes
    asked: float
    told: float = inf
