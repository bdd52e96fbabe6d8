from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from postroad.groups.deadlines import Deadlines, Key


def key(name: str, group: str = "g") -> Key:
    return Key(group, "session", name)


def test_due_groups_are_named_once_and_asked_for_what_is_due() -> None:
    deadlines = Deadlines()
    deadlines.set(key("a"), 10)
    deadlines.set(key("b"), 11)
    deadlines.set(key("c", "other"), 12)
    assert deadlines.next() == 10
    assert deadlines.due(9) == []
    assert deadlines.due(11) == ["g"]
    assert deadlines.take("g", 11) == [key("a"), key("b")]
    assert deadlines.take("g", 11) == []
    assert deadlines.next() == 12


def test_deadline_that_moves_after_it_was_due_is_not_taken() -> None:
    deadlines = Deadlines()
    deadlines.set(key("a"), 10)
    assert deadlines.due(10) == ["g"]
    deadlines.set(key("a"), 20)  # a heartbeat came in between
    assert deadlines.take("g", 12) == []
    assert deadlines.next() == 20


def test_moving_a_deadline_later_queues_nothing() -> None:
    deadlines = Deadlines()
    for at in range(1, 1_000):
        deadlines.set(key("a"), at)
    assert len(deadlines) == 1
    assert deadlines.next() == 999


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 50), st.integers(0, 3))))
def test_deadlines_agree_with_a_plain_dict(steps: list[tuple[str, int | None, int]]) -> None:
    deadlines = Deadlines()
    model: dict[Key, int] = {}
    now = 0
    for name, at, passes in steps:
        if at is None:
            deadlines.cancel(key(name))
            model.pop(key(name), None)
        else:
            deadlines.set(key(name), at)
            model[key(name)] = at
        assert deadlines.next() == min(model.values(), default=None)
        now += passes
        groups = deadlines.due(now)
        due = {k for k, v in model.items() if v <= now}
        assert groups == (["g"] if due else [])
        if groups:
            assert set(deadlines.take("g", now)) == due
        for k in due:
            del model[k]
