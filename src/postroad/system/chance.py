"""What is made from chance."""

from __future__ import annotations

from random import Random
from uuid import UUID


def make_uuid(random: Random) -> UUID:
    """A random one (version 4)."""
    return UUID(bytes=random.randbytes(16), version=4)
