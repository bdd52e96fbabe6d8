"""Commits in flight, crashes, deletion and expiry, against a dict.

The machine is the broker: commits are decided and appended at once, committed and applied later, in the
log's order. A crash keeps what was committed and any part of the rest. Deleting runs alone, as the contract
says.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from postroad.errors import ApiError
from postroad.groups.answers import Outcome
from postroad.groups.coordinator import Groups
from postroad.groups.records import Record
from postroad.groups.requests import CommitRequest, OffsetToCommit, Topics
from postroad.groups.settings import GroupSettings
from postroad.now import Now

NO_TOPICS = Topics(0, {})

GROUPS = st.sampled_from(["g", "h"])
PLACES = st.sampled_from([("t", 0), ("t", 1), ("u", 0)])
RETENTION_MS = 100_000
SWEEP_MS = 10_000
Change = tuple[str, tuple[str, int], int, int]  # group, place, offset, time of the commit


class OffsetsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.settings = GroupSettings(offsets_retention_ms=RETENTION_MS, offsets_sweep_interval_ms=SWEEP_MS)
        self.groups = Groups(self.settings, lambda: NO_TOPICS)
        self.log: list[Record] = []
        self.ms = 0
        self.in_flight: list[tuple[Outcome, list[Change]]] = []
        self.model: dict[tuple[str, tuple[str, int]], tuple[int, int]] = {}  # offset and time of the commit

    @property
    def now(self) -> Now:
        return Now(self.ms, self.ms)

    @rule(group=GROUPS, offset_keys=st.lists(PLACES, min_size=1, max_size=3), offset=st.integers(0, 9))
    def commit(self, group: str, offset_keys: list[tuple[str, int]], offset: int) -> None:
        items = tuple(OffsetToCommit(topic, partition, offset) for topic, partition in offset_keys)
        outcome = self.groups.commit(CommitRequest(group, "", None, -1, items), "token", self.now)
        self.in_flight.append((outcome, [(group, offset_key, offset, self.ms) for offset_key in offset_keys]))

    @precondition(lambda self: self.in_flight)
    @rule()
    def oldest_is_committed(self) -> None:
        outcome, changes = self.in_flight.pop(0)
        self.store(outcome)
        for group, offset_key, offset, at_ms in changes:
            self.model[group, offset_key] = (offset, at_ms)

    @rule(data=st.data(), compacted=st.booleans())
    def crash(self, data: st.DataObject, compacted: bool) -> None:
        """A prefix of what was in flight is found again, though nobody was told so."""
        for _ in range(data.draw(st.integers(0, len(self.in_flight)))):
            self.oldest_is_committed()
        self.in_flight.clear()
        last = {record.key: at for at, record in enumerate(self.log)}
        self.groups = Groups(self.settings, lambda: NO_TOPICS)
        for at, record in enumerate(self.log):
            if not compacted or last[record.key] == at:
                self.groups.apply(record)
        self.groups.resume(self.now)

    @rule(group=GROUPS, offset_keys=st.lists(PLACES, max_size=3))
    def delete_offsets(self, group: str, offset_keys: list[tuple[str, int]]) -> None:
        self.settle()
        try:
            self.store(self.groups.delete_offsets(group, offset_keys, "token"))
        except ApiError:
            assert not any(owner == group for owner, _ in self.model)
        for offset_key in offset_keys:
            self.model.pop((group, offset_key), None)

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.settle()
        try:
            self.store(self.groups.delete(group, "token"))
        except ApiError:
            assert not any(owner == group for owner, _ in self.model)
        self.forget(lambda owner, _: owner == group)

    @rule(topic=st.sampled_from(["t", "u"]))
    def topic_is_deleted(self, topic: str) -> None:
        self.settle()
        for group in self.groups.groups_with_offsets(topic):
            self.store(self.groups.forget_topic(group, topic))
        self.forget(lambda _, offset_key: offset_key[0] == topic)

    @rule(ms=st.sampled_from([1_000, 30_000, 60_000]))
    def time_passes(self, ms: int) -> None:
        """Sweeps may come late by their interval; an offset is never gone early."""
        self.settle()
        for _ in range(ms // 1_000):
            self.ms += 1_000
            for group in self.groups.due(self.now):
                self.store(self.groups.expire(group, self.now))
        gone = {
            where
            for where, (_, at_ms) in self.model.items()
            if self.found(*where) is None and self.age(at_ms) >= 0
        }
        for where in gone:
            del self.model[where]
        assert all(self.age(at_ms) <= SWEEP_MS for _, at_ms in self.model.values())

    def age(self, at_ms: int) -> int:
        """Milliseconds since the retention was over."""
        return self.ms - at_ms - RETENTION_MS

    def found(self, group: str, offset_key: tuple[str, int]) -> int | None:
        value = self.groups.fetch(group, [offset_key])[0].value
        return None if value is None else value.offset

    def settle(self) -> None:
        while self.in_flight:
            self.oldest_is_committed()

    def store(self, outcome: Outcome) -> None:
        self.log += outcome.records
        for record in outcome.records:
            self.groups.apply(record)

    def forget(self, which: object) -> None:
        self.model = {where: value for where, value in self.model.items() if not which(*where)}  # type: ignore[operator]

    @invariant()
    def every_acknowledged_commit_is_found(self) -> None:
        assert {where: self.found(*where) for where in self.model} == {
            where: offset for where, (offset, _) in self.model.items()
        }
        for group in ("g", "h"):
            offset_keys = {(f.topic, f.partition) for f in self.groups.fetch(group, None)}
            assert offset_keys == {offset_key for owner, offset_key in self.model if owner == group}
        self.groups.check()


TestOffsetsMachine = OffsetsMachine.TestCase
TestOffsetsMachine.settings = settings(max_examples=200, stateful_step_count=30)
