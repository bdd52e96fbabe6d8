"""Positions of one log in another, against a model of two logs that are mirrored into each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.mirrors import pairs
from postroad.mirrors.pairs import Copies, Details, Pair, Returns, Run, Translated, Unread, translate

GAP = -1  # an offset without a message: a marker, or what compaction took


@dataclass
class Log:
    """Numbers of messages, by offset. Those of the other log are copies."""

    messages: list[int] = field(default_factory=list)
    own: set[int] = field(default_factory=set)
    copied: int = 0  # of the other log, up to this offset

    def take(self, other: Log, count: int) -> None:
        """A mirror comes along: what is the other's own is copied."""
        for message in other.messages[self.copied : self.copied + count]:
            if message in other.own:
                self.messages.append(message)
        self.copied = min(len(other.messages), self.copied + count)


class TwoLogs:
    """What a mirror from `a` to `b` learns of both while it reads `a`."""

    def __init__(self) -> None:
        self.a, self.b = Log(), Log()
        self.copies, self.returns = Copies(), Returns()

    def step(self, what: str, count: int) -> None:
        if what in "ab":
            log = self.a if what == "a" else self.b
            for _ in range(count):
                message = len(self.a.messages) * 1_000 + len(self.b.messages)  # no two are the same
                log.own.add(message)
                log.messages.append(message)
        elif what in ("gap a", "gap b"):
            (self.a if what == "gap a" else self.b).messages.append(GAP)
        elif what == "back":
            self.a.take(self.b, count)
        else:
            self._mirror(count)

    def _mirror(self, count: int) -> None:
        read = range(self.b.copied, min(len(self.a.messages), self.b.copied + count))
        first = len(self.b.messages)
        sources = [offset for offset in read if self.a.messages[offset] in self.a.own]
        for offset in read:
            message = self.a.messages[offset]
            if message in self.b.own:
                self.returns.add(offset, self.b.messages.index(message))
        self.b.take(self.a, count)
        self.copies.add_all(sources, first)

    def translate(self, position: int, start: int = 0) -> Translated:
        details: dict[Run, list[Pair]] = {}
        while True:
            try:
                at = min(position, self.b.copied)
                return translate(at, self.copies, self.returns, start, len(self.b.messages), details)
            except Unread as unread:
                details[unread.run] = self.pairs(unread.run)

    def pairs(self, run: Run) -> list[Pair]:
        there = range(run.target, run.target_last + 1)
        found = [Pair(self.a.messages.index(self.b.messages[offset]), offset) for offset in there
                 if self.b.messages[offset] in self.a.messages[run.source : run.source_last + 1]]  # fmt: skip
        return [pair for pair in found if run.source <= pair.source <= run.source_last]

    def first_unread(self, position: int, start: int = 0) -> int:
        read = set(self.a.messages[: min(position, self.b.copied)])
        for offset, message in enumerate(self.b.messages):
            if offset >= start and message != GAP and message not in read:
                return offset
        return len(self.b.messages)

    def read_behind(self, position: int, there: int) -> int:
        read = set(self.a.messages[: min(position, self.b.copied)]) - {GAP}
        return sum(message in read for message in self.b.messages[there:])


def steps(*whats: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    return st.lists(st.tuples(st.sampled_from(whats), st.integers(1, 6)), max_size=25)


@settings(max_examples=400)
@given(steps("a", "b", "mirror", "back", "gap a"), st.integers(1, 5))
def test_a_position_is_translated_to_the_first_message_that_was_not_read(
    taken: list[tuple[str, int]], sparse_max: int
) -> None:
    logs = TwoLogs()
    before, pairs.SPARSE_MAX = pairs.SPARSE_MAX, sparse_max  # type: ignore[misc]
    try:
        for step in taken:
            logs.step(*step)
        for position in range(len(logs.a.messages) + 1):
            found = logs.translate(position)
            assert found.position == logs.first_unread(position)
            assert found.again >= logs.read_behind(position, found.position)
            if found.again:
                assert logs.read_behind(position, found.position)
    finally:
        pairs.SPARSE_MAX = before  # type: ignore[misc]


@settings(max_examples=200)
@given(steps("a", "b", "mirror", "back", "gap a", "gap b"), st.integers(0, 30))
def test_a_position_is_never_ahead_of_what_was_not_read(taken: list[tuple[str, int]], start: int) -> None:
    """Also where the target has gaps, or has deleted its first messages."""
    logs = TwoLogs()
    for step in taken:
        logs.step(*step)
    start = min(start, len(logs.b.messages))
    for position in range(len(logs.a.messages) + 1):
        found = logs.translate(position, start).position
        assert start <= found <= logs.first_unread(position, start)


@given(steps("a", "mirror"))
def test_while_only_one_side_is_written_nothing_comes_again(taken: list[tuple[str, int]]) -> None:
    logs = TwoLogs()
    for step in taken:
        logs.step(*step)
    assert all(logs.translate(position).again == 0 for position in range(len(logs.a.messages) + 1))


def test_after_a_switch_over_and_back_positions_are_exact() -> None:
    """Each side was written while the other was not, and all was mirrored in between."""
    logs = TwoLogs()
    for step in (("a", 4), ("mirror", 9), ("b", 3), ("back", 9), ("a", 2), ("mirror", 9)):
        logs.step(*step)
    assert [logs.translate(position) for position in range(10)] == [(position, 0) for position in range(10)]


@given(st.data())
def test_runs_that_several_have_noted_are_put_together(data: st.DataObject) -> None:
    """Each began at another offset, and ended at another."""
    sources = sorted(data.draw(st.sets(st.integers(0, 40), min_size=1, max_size=20)))
    noted: list[Run] = []
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(sources) - 1))
        some = Copies()
        some.add_all(sources[first:], 100 + first)
        noted += some.runs
    whole = Copies()
    whole.add_all(sources, 100)
    merged = Copies(noted + whole.runs)
    details: Details = {
        run: [
            Pair(source, 100 + n)
            for n, source in enumerate(sources)
            if run.source <= source <= run.source_last
        ]
        for run in merged.runs
    }
    for position in range(42):
        before = [Pair(source, 100 + n) for n, source in enumerate(sources) if source < position]
        after = [Pair(source, 100 + n) for n, source in enumerate(sources) if source >= position]
        expected = (before[-1] if before else None, after[0] if after else None)
        assert merged.around(position, details) == expected


def test_long_runs_are_one_and_pruned_ones_are_gone() -> None:
    copies = Copies()
    for number in range(10):
        copies.add_all(range(number * 100, number * 100 + 100), number * 100 + 7)
    assert copies.runs == [Run(0, 999, 7, 1006)]
    copies.add(2_000, 3_000)
    assert copies.changed == {0, 2_000}
    assert copies.forget_before(1_000) == []
    assert copies.forget_before(5_000) == [0]
    assert copies.runs == [Run(2_000, 2_000, 3_000, 3_000)]
