"""Work in the background that fails is done again, and the log says whether somebody has to see to it."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from postroad.broker.tasks import until_done
from postroad.errors import StoreUnavailable
from simulator.process import Process
from simulator.world import World


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (StoreUnavailable("The coordination store did not answer in time."), logging.WARNING),
        (OSError(5, "Input/output error"), logging.ERROR),
    ],
)
def test_work_that_fails_is_done_again_and_a_store_that_is_away_is_no_error(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[float] = []
    with World(seed=1) as world:

        async def work() -> None:
            attempts.append(world.now)
            if len(attempts) < 4:
                raise error

        task = Process(world, "node").start(until_done(work, "deleted topic x can't be removed"))
        world.run_until(task.done, within=10)
    pauses = [later - earlier for earlier, later in pairwise(attempts)]
    assert pauses == pytest.approx([1, 2, 4], abs=0.1)
    assert [record.levelno for record in caplog.records] == [level] * 3
    assert caplog.records[0].getMessage().endswith("; trying again in 1 s")
