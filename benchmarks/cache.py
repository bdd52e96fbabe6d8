"""Where the benchmark keeps what it fetched, built and wrote: outside the repository."""

from __future__ import annotations

import os
from pathlib import Path


class Missing(Exception):
    """Something that this machine lacks.

    The text's first line says what and how to get it, and goes into reports; paths and such come after it.
    """


def directory(name: str) -> Path:
    """`name` below the user's cache directory; it exists afterwards."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "postroad" / name
    path.mkdir(parents=True, exist_ok=True)
    return path
