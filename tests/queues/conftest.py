from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroad.queues import schedule, table


@pytest.fixture(scope="module")
def small_chunks() -> Iterator[None]:
    """A few rows fill a chunk, so that small examples have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "CHUNK_ROWS", 3)
        patch.setattr(schedule, "CHUNK_ROWS", 3)
        yield
