"""Virtual time, chance by name, the trace, and the end of a world."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from simulator.trace import checksum
from simulator.world import START_S, World


def test_events_happen_in_the_order_of_their_times_and_of_their_making() -> None:
    with World(1) as world:
        seen: list[tuple[str, float]] = []
        world.after(2.0, lambda: seen.append(("late", world.now)))
        world.after(1.0, lambda: seen.append(("first", world.now)))
        world.after(1.0, lambda: seen.append(("second", world.now)))
        world.run(START_S + 1.5)
        assert seen == [("first", START_S + 1.0), ("second", START_S + 1.0)]
        assert world.now == START_S + 1.5
        world.run_for(1.0)
        assert seen[2:] == [("late", START_S + 2.0)]


def test_a_draw_under_one_name_changes_none_under_another() -> None:
    with World(7) as one, World(7) as two:
        one.random("network").random()
        assert one.random("disk").random() == two.random("disk").random()
        assert one.random("network").random() != two.random("network").random()
    with World(7) as one, World(8) as two:
        assert one.random("disk").random() != two.random("disk").random()


def test_a_condition_that_does_not_come_true_is_said_with_its_seed() -> None:
    with World(3) as world:
        world.run_until(lambda: world.now > START_S + 1, within=2)
        with pytest.raises(TimeoutError, match="seed 3"):
            world.run_until(lambda: False, within=1)


def test_the_trace_tells_of_everything_that_was_noted(tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b"):
        with World(1, trace=tmp_path / name) as world:
            world.after(0.5, world.note, "disk", "write", checksum(b"abc"))
            world.run_for(1)
            digests.append(world.trace.digest)
    assert digests[0] == digests[1]
    assert (tmp_path / "a").read_text() == "1000.500000000 disk write 3:352441c2\n"
    with World(1) as world:
        world.note("disk", "write", checksum(b"abd"))
        assert world.trace.digest != digests[0]


def test_the_collector_is_off_while_a_world_exists() -> None:
    assert gc.isenabled()
    with World(1) as world:
        assert not gc.isenabled()
        world.sometimes("a thing")
        assert world.seen["a thing"] == 1
    assert gc.isenabled()
